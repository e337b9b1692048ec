#pragma once
// The background of drawn text.

#include <opencv2/core.hpp>

#include "lockstep/ocr/synth/dice.h"

namespace lockstep::ocr {

cv::Scalar draw_colour(Dice& dice);

/// A picture of `size` (8-bit BGR) without text: a gradient, soft blotches, a weave or stripes, and
/// at most `clutter` shapes (lines, boxes, discs, outlines, polygons).
cv::Mat draw_backdrop(Dice& dice, cv::Size size, int clutter);

}  // namespace lockstep::ocr
