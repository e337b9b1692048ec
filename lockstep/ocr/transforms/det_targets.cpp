#include "lockstep/ocr/transforms/det_targets.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "lockstep/ocr/geometry/polygon.h"

namespace lockstep::ocr {
namespace {

using Corners = std::vector<cv::Point>;

/// Truncates towards zero, as NumPy's astype(int32).
Corners truncated(const Polygon& polygon) {
  Corners corners;
  corners.reserve(polygon.size());
  for (const auto& corner : polygon) {
    corners.emplace_back(static_cast<int>(corner.x), static_cast<int>(corner.y));
  }
  return corners;
}

void fill(cv::Mat& map, const Corners& corners, double value) {
  cv::fillPoly(map, std::vector<Corners>{corners}, value);
}

bool is_small(const Polygon& polygon, double least) {
  cv::Point2f low = polygon.front(), high = low;
  for (const auto& corner : polygon) {
    low = {std::min(low.x, corner.x), std::min(low.y, corner.y)};
    high = {std::max(high.x, corner.x), std::max(high.y, corner.y)};
  }
  return std::min(high.x - low.x, high.y - low.y) < least;
}

/// From (x1, y1) to (x2, y2), relative to the corner of the drawn part.
struct Edge {
  float x1, y1, x2, y2;
  float inverse_length_sq;  ///< 0 for an edge without a length: its angle is never obtuse.
};

std::vector<Edge> edges_of(const Polygon& polygon, cv::Point origin) {
  std::vector<Edge> edges;
  edges.reserve(polygon.size());
  const cv::Point2f from(static_cast<float>(origin.x), static_cast<float>(origin.y));
  for (size_t i = 0; i < polygon.size(); ++i) {
    const cv::Point2f a = polygon[i] - from, b = polygon[(i + 1) % polygon.size()] - from;
    const float length_sq = (b - a).ddot(b - a) > 0 ? (b - a).dot(b - a) : 0;
    edges.push_back({a.x, a.y, b.x, b.y, length_sq > 0 ? 1 / length_sq : 0});
  }
  return edges;
}

/// Lowers distance_sq[x] to the squared distance between pixel (x, y) and `edge`. With a, b the
/// vectors to the edge's ends: a.b < 0 is the obtuse angle, (a x b)^2 / length^2 the squared
/// distance to the line. Without branches, so that the compiler vectorises it.
void lower_to_edge(const Edge& edge, float y, int width, float* distance_sq) {
  const float ay = edge.y1 - y, by = edge.y2 - y;
  const float ay_sq = ay * ay, by_sq = by * by, y_product = ay * by;
  for (int x = 0; x < width; ++x) {
    const float ax = edge.x1 - static_cast<float>(x), bx = edge.x2 - static_cast<float>(x);
    const float cross = ax * by - bx * ay;
    const float to_line = cross * cross * edge.inverse_length_sq;
    const float a_sq = ax * ax + ay_sq, b_sq = bx * bx + by_sq;
    const float to_end = a_sq < b_sq ? a_sq : b_sq;
    const float to_edge = ax * bx + y_product < 0 ? to_line : to_end;
    distance_sq[x] = to_edge < distance_sq[x] ? to_edge : distance_sq[x];
  }
}

/// Raises values[x] to 1 - distance / limit.
void raise_to(const float* distance_sq, float limit, int width, float* values) {
  for (int x = 0; x < width; ++x) {
    const float distance = std::sqrt(distance_sq[x]) / limit;
    const float value = 1 - (distance < 1 ? distance : 1);
    values[x] = value > values[x] ? value : values[x];
  }
}

/// Draws one polygon's border into the visible part of `box`.
void draw_border(const Polygon& polygon, double limit, const cv::Rect& box, cv::Mat& map) {
  const cv::Rect visible = box & cv::Rect({}, map.size());
  if (visible.empty()) return;
  const auto edges = edges_of(polygon, visible.tl());
  // Distances beyond the limit count as the limit.
  const auto farthest = static_cast<float>(limit * limit);
  std::vector<float> distance_sq(static_cast<size_t>(visible.width));
  for (int y = 0; y < visible.height; ++y) {
    std::fill(distance_sq.begin(), distance_sq.end(), farthest);
    for (const Edge& edge : edges) {
      lower_to_edge(edge, static_cast<float>(y), visible.width, distance_sq.data());
    }
    raise_to(distance_sq.data(), static_cast<float>(limit), visible.width,
             map.ptr<float>(visible.y + y) + visible.x);
  }
}

}  // namespace

double offset_distance(const Polygon& polygon, double shrink_ratio) {
  const double length = perimeter(polygon);
  return length > 0 ? area(polygon) * (1 - shrink_ratio * shrink_ratio) / length : 0;
}

void make_shrink_map(const ShrinkBinaryMap& options, Sample& sample) {
  sample.binary_map = cv::Mat::zeros(sample.image.size(), CV_32F);
  sample.mask = cv::Mat::ones(sample.image.size(), CV_32F);
  for (auto& [polygon, text, ignored] : sample.regions) {
    if (!ignored && !is_small(polygon, options.min_text_size)) {
      const auto shrunk = offset(polygon, -offset_distance(polygon, options.shrink_ratio));
      if (!shrunk.empty()) {
        fill(sample.binary_map, shrunk.front(), 1);
        continue;
      }
    }
    fill(sample.mask, truncated(polygon), 0);
    ignored = true;
  }
}

void make_border_map(const BorderMap& options, Sample& sample) {
  cv::Mat map = cv::Mat::zeros(sample.image.size(), CV_32F);
  sample.thresh_mask = cv::Mat::zeros(sample.image.size(), CV_32F);
  for (const auto& [polygon, text, ignored] : sample.regions) {
    if (ignored) continue;
    const double distance = offset_distance(polygon, options.shrink_ratio);
    const auto grown = offset(polygon, distance);
    if (grown.empty() || distance <= 0) continue;
    cv::fillPoly(sample.thresh_mask, std::vector{grown.front()}, 1);
    draw_border(polygon, distance, cv::boundingRect(grown.front()), map);
  }
  map.convertTo(sample.thresh_map, CV_32F, options.thresh_max - options.thresh_min,
                options.thresh_min);
}

}  // namespace lockstep::ocr
