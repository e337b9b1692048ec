#pragma once
// Converts DBNet's map of probabilities to text regions: MindOCR's DBPostprocess.

#include <optional>

#include "lockstep/ocr/options.h"
#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

struct DetectedRegion {
  Polygon polygon;  ///< Upper left, upper right, lower right, lower left for quads.
  float score = 0;  ///< 0 .. 1.
};

/// Regions in OpenCV's order of contours. `probability`: H x W, 32-bit float.
///   1. Contours (outer and inner) of probability >= binary_thresh, the first max_candidates.
///   2. Score: mean probability over the pixels of that bitmap within the contour's upright
///      bounding box, other contours' pixels too. Contours below box_thresh are dropped. (Differs
///      from the usual mean over the polygon; the published figures use it.)
///   3. kQuad: rectangle of least area, short side >= 3; kPoly: Douglas-Peucker with 0.5 % of the
///      perimeter, >= 4 corners.
///   4. Grown by area * expand_ratio / perimeter; kPoly: must stay one polygon. A fitted rectangle
///      with a short side below 5 is dropped.
/// With `resize` the corners are those of the source image: divided by the scales, rounded half to
/// even and clamped to it. Otherwise they stay in the map's pixels.
std::vector<DetectedRegion> db_postprocess(const cv::Mat& probability,
                                           const std::optional<ResizeRecord>& resize,
                                           const DbPostprocessOptions& options);

/// Step 2's score of one contour; `bitmap`: 8-bit, not zero for text.
double box_score(const cv::Mat& probability, const cv::Mat& bitmap,
                 const std::vector<cv::Point>& contour);

}  // namespace lockstep::ocr
