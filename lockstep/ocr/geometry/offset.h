#pragma once
// Growing and shrinking a polygon, which is how DBNet's targets are made and its boxes recovered.

#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

/// Polygons at `distance` pixels outside (or, negative, inside) of `polygon`, by Clipper with round
/// joins; corners are cut to whole pixels towards zero first, arc tolerance is 0.25 and results are
/// whole pixels, as in MindOCR. None when it shrinks to nothing, several when it falls apart, in
/// Clipper's order. The direction of the corners does not matter.
/// Error(kCorrupt): a coordinate that is no number or beyond 1e8.
std::vector<std::vector<cv::Point>> offset(const Polygon& polygon, double distance);
std::vector<std::vector<cv::Point>> offset(const std::vector<cv::Point>& polygon, double distance);

}  // namespace lockstep::ocr
