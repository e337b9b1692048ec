#pragma once
// Measures of a polygon: pixels, in double precision, the ring closed implicitly.

#include <array>

#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

/// Absolute shoelace area in pixels squared; a self-crossing polygon's loops cancel, as in Shapely.
double area(const Polygon& polygon);

/// Length of the closed ring in pixels.
double perimeter(const Polygon& polygon);

/// Upper left, upper right, lower right, lower left of four corners, in MindOCR's order. The two
/// leftmost corners are the left side, and the higher of each side is its upper end. Of two at the
/// same height the right one is the upper end.
std::array<cv::Point2f, 4> ordered_corners(std::array<cv::Point2f, 4> corners);

/// Rotated rectangle of least area around `points` (at least one).
struct FittedBox {
  std::array<cv::Point2f, 4> corners;  ///< In the order of ordered_corners().
  float short_side = 0;                ///< Pixels.
};
FittedBox fit_box(const std::vector<cv::Point>& points);
FittedBox fit_box(const Polygon& points);

// Growing and shrinking of polygons, for DBNet's targets and its boxes.

/// Polygons at `distance` pixels outside (or, negative, inside) of `polygon`, by Clipper with round
/// joins. As in MindOCR, corners are first cut to whole pixels towards zero, arc tolerance is 0.25
/// and results are whole pixels. Empty if it shrinks to nothing, several in Clipper's order if it
/// falls apart. The direction of the corners does not matter. Error(kCorrupt): a coordinate that is
/// no number or beyond 1e8.
std::vector<std::vector<cv::Point>> offset(const Polygon& polygon, double distance);
std::vector<std::vector<cv::Point>> offset(const std::vector<cv::Point>& polygon, double distance);

}  // namespace lockstep::ocr
