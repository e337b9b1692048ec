#pragma once
// The input of a recogniser, cut out of a picture.

#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

/// `image` within four corners (upper left first, clockwise), straightened. It is as wide and as
/// high as the longer of the opposite sides, in whole pixels and at least one. Bicubic; pixels
/// beyond the image's edge repeat its last ones. A result at least 1.5 times as high as wide is
/// turned left by a quarter. A polygon of other than four corners is cut out by the rectangle of
/// least area around its whole-pixel corners. The same as MindOCR's predictors. Errors:
/// kInvalidArgument for fewer than three corners or an empty image.
cv::Mat crop_text_region(const cv::Mat& image, const Polygon& polygon);

}  // namespace lockstep::ocr
