#include "lockstep/ocr/geometry/offset.h"

#include <fmt/format.h>

#include <cmath>
#include <polyclipping/clipper.hpp>

#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

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

// Far beyond any picture, far within what an int can hold.
constexpr double kFarthest = 1e8;

// A template, so that whole pixels need no detour over floating point.
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

std::vector<std::vector<cv::Point>> offset(const Polygon& polygon, double distance) {
  return grown(whole_pixels(polygon), distance);
}

std::vector<std::vector<cv::Point>> offset(const std::vector<cv::Point>& polygon, double distance) {
  return grown(whole_pixels(polygon), distance);
}

}  // namespace lockstep::ocr
