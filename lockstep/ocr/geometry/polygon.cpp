#include "lockstep/ocr/geometry/polygon.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

namespace lockstep::ocr {
namespace {

// Calls body(x1, y1, x2, y2) for each edge, the closing one too. Relative to the first corner:
// products of small numbers lose nothing.
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

}  // namespace lockstep::ocr
