#include "lockstep/ocr/geometry/polygon.h"

#include <fmt/format.h>
#include <polyclipping/clipper.hpp>

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

// Calls body(x1, y1, x2, y2) for each edge, including the closing one. Coordinates are relative to
// the first corner: products of small numbers are exact.
template <class Body>
void each_edge(const Polygon& polygon, Body body) {
  if (polygon.empty()) return;
  const cv::Point2d origin = polygon.front();
  cv::Point2d from = cv::Point2d(polygon.back()) - origin;
  for (const cv::Point2f& corner : polygon) {
    const cv::Point2d to = cv::Point2d(corner) - origin;
    body(from, to);
    from = to;
  }
}

FittedBox corners_of(const cv::RotatedRect& rect) {
  FittedBox box;
  rect.points(box.corners.data());
  box.corners = ordered_corners(box.corners);
  box.short_side = std::min(rect.size.width, rect.size.height);
  return box;
}

std::vector<std::vector<cv::Point>> grown(const ClipperLib::Path& path, double distance) {
  ClipperLib::ClipperOffset clipper(/*miterLimit=*/2.0, /*roundPrecision=*/0.25);
  clipper.AddPath(path, ClipperLib::jtRound, ClipperLib::etClosedPolygon);
  ClipperLib::Paths found;
  clipper.Execute(found, distance);

  std::vector<std::vector<cv::Point>> result;
  for (const ClipperLib::Path& one : found) {
    auto& points = result.emplace_back();
    for (const ClipperLib::IntPoint& at : one) {
      points.emplace_back(static_cast<int>(at.X), static_cast<int>(at.Y));
    }
  }
  return result;
}

// Far beyond any picture, far within the range of an int.
constexpr double kFarthest = 1e8;

// A template, so that whole pixels need no conversion to floating point.
template <class Point>
ClipperLib::Path whole_pixels(const std::vector<Point>& polygon) {
  ClipperLib::Path path;
  for (const Point& at : polygon) {
    if (!(std::abs(at.x) <= kFarthest && std::abs(at.y) <= kFarthest)) {
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("polygon has a corner at ({}, {}); coordinates are finite and below "
                              "{:g}",
                              at.x, at.y, kFarthest));
    }
    path.emplace_back(static_cast<ClipperLib::cInt>(at.x), static_cast<ClipperLib::cInt>(at.y));
  }
  return path;
}

}  // namespace

double area(const Polygon& polygon) {
  double twice = 0;
  each_edge(polygon,
            [&](const cv::Point2d& a, const cv::Point2d& b) { twice += a.x * b.y - b.x * a.y; });
  return std::abs(twice) / 2;
}

double perimeter(const Polygon& polygon) {
  double length = 0;
  each_edge(polygon, [&](const cv::Point2d& a, const cv::Point2d& b) {
    length += std::hypot(b.x - a.x, b.y - a.y);
  });
  return length;
}

std::array<cv::Point2f, 4> ordered_corners(std::array<cv::Point2f, 4> corners) {
  std::stable_sort(corners.begin(), corners.end(),
                   [](const cv::Point2f& a, const cv::Point2f& b) { return a.x < b.x; });
  auto [left_top, left_bottom, right_top, right_bottom] = corners;
  if (!(left_bottom.y > left_top.y)) std::swap(left_top, left_bottom);
  if (!(right_bottom.y > right_top.y)) std::swap(right_top, right_bottom);
  return {left_top, right_top, right_bottom, left_bottom};
}

FittedBox fit_box(const std::vector<cv::Point>& points) {
  return corners_of(cv::minAreaRect(points));
}

FittedBox fit_box(const Polygon& points) {
  return corners_of(cv::minAreaRect(points));
}

std::vector<std::vector<cv::Point>> offset(const Polygon& polygon, double distance) {
  return grown(whole_pixels(polygon), distance);
}

std::vector<std::vector<cv::Point>> offset(const std::vector<cv::Point>& polygon, double distance) {
  return grown(whole_pixels(polygon), distance);
}

}  // namespace lockstep::ocr
