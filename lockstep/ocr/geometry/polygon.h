#pragma once
// Measures of a polygon: pixels, in double precision, the ring closed implicitly.

#include <array>

#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

/// Absolute shoelace area in pixels squared; a self-crossing polygon's loops cancel, as in Shapely.
double area(const Polygon& polygon);

/// Length of the closed ring in pixels.
double perimeter(const Polygon& polygon);

/// Upper left, upper right, lower right, lower left of four corners: the two that lie further left
/// are the left side, and the higher of each side is its upper end (MindOCR's order). Of two at the
/// same height the one further right is the upper.
std::array<cv::Point2f, 4> ordered_corners(std::array<cv::Point2f, 4> corners);

/// Rectangle of least area, turned as it likes, around `points` (at least one).
struct FittedBox {
  std::array<cv::Point2f, 4> corners;  ///< In the order of ordered_corners().
  float short_side = 0;                ///< Pixels.
};
FittedBox fit_box(const std::vector<cv::Point>& points);
FittedBox fit_box(const Polygon& points);

// Growing and shrinking, which is how DBNet's targets are made and its boxes recovered.

/// Polygons at `distance` pixels outside (or, negative, inside) of `polygon`, by Clipper with round
/// joins; corners are cut to whole pixels towards zero first, arc tolerance is 0.25 and results are
/// whole pixels, as in MindOCR. None when it shrinks to nothing, several when it falls apart, in
/// Clipper's order. The direction of the corners does not matter.
/// Error(kCorrupt): a coordinate that is no number or beyond 1e8.
std::vector<std::vector<cv::Point>> offset(const Polygon& polygon, double distance);
std::vector<std::vector<cv::Point>> offset(const std::vector<cv::Point>& polygon, double distance);

}  // namespace lockstep::ocr
