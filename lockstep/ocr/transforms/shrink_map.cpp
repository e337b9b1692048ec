#include "lockstep/ocr/transforms/shrink_map.h"

#include <opencv2/imgproc.hpp>

#include "lockstep/ocr/geometry/offset.h"
#include "lockstep/ocr/geometry/polygon.h"

namespace lockstep::ocr {
namespace {

using Corners = std::vector<cv::Point>;

/// Cut off towards zero, as NumPy's astype(int32).
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

}  // namespace lockstep::ocr
