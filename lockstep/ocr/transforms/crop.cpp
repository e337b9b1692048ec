#include "lockstep/ocr/transforms/crop.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::ocr {
namespace {

struct Span {
  float low, high;
};

Span span_of(const Polygon& polygon, int axis) {
  Span span{std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()};
  for (const auto& corner : polygon) {
    const float at = axis == 0 ? corner.x : corner.y;
    span = {std::min(span.low, at), std::max(span.high, at)};
  }
  return span;
}

/// Rounded, halves to the even; what lies before the first line counts as on it.
int to_line(float at, int side) {
  return static_cast<int>(std::clamp(std::nearbyint(at), 0.0F, static_cast<float>(side)));
}

bool overlaps(const Polygon& polygon, const cv::Rect& crop) {
  const auto x = span_of(polygon, 0), y = span_of(polygon, 1);
  return x.high > static_cast<float>(crop.x) && y.high > static_cast<float>(crop.y) &&
         x.low < static_cast<float>(crop.x + crop.width) &&
         y.low < static_cast<float>(crop.y + crop.height);
}

/// Two of `lines`, the lower first.
std::pair<int, int> draw_two(const std::vector<int>& lines, Philox& draws) {
  const auto draw = [&] {
    return lines[static_cast<size_t>(draws.below(static_cast<uint32_t>(lines.size())))];
  };
  const int first = draw(), second = draw();
  return std::minmax(first, second);
}

}  // namespace

std::vector<int> free_lines(const std::vector<TextRegion>& regions, int axis, int side) {
  std::vector<bool> taken(static_cast<size_t>(side));
  for (const auto& region : regions) {
    if (region.ignored) continue;
    const auto [low, high] = span_of(region.polygon, axis);
    const int end = std::min(to_line(high, side) + 1, side);
    for (int line = to_line(low, side); line < end; ++line) taken[static_cast<size_t>(line)] = true;
  }
  std::vector<int> lines;
  for (int line = 0; line < side; ++line) {
    if (!taken[static_cast<size_t>(line)]) lines.push_back(line);
  }
  return lines;
}

std::optional<cv::Rect> find_crop(const RandomCropWithBBox& options,
                                  const std::vector<TextRegion>& regions, cv::Size size,
                                  Philox& draws) {
  const auto rows = free_lines(regions, 1, size.height),
             columns = free_lines(regions, 0, size.width);
  if (rows.empty() || columns.empty()) return std::nullopt;
  const double least_height = std::ceil(size.height * options.min_crop_ratio);
  const double least_width = std::ceil(size.width * options.min_crop_ratio);
  for (int i = 0; i < options.max_tries; ++i) {
    const auto [top, bottom] = draw_two(rows, draws);
    const auto [left, right] = draw_two(columns, draws);
    const cv::Rect crop(left, top, right - left, bottom - top);
    if (crop.height < least_height || crop.width < least_width || crop.empty()) continue;
    const bool has_text = std::any_of(regions.begin(), regions.end(), [&](const auto& region) {
      return !region.ignored && overlaps(region.polygon, crop);
    });
    if (has_text) return crop;
  }
  return std::nullopt;
}

cv::Rect draw_crop(const RandomCropWithBBox& options, const std::vector<TextRegion>& regions,
                   cv::Size size, Philox& draws) {
  const cv::Rect whole({}, size);
  const bool has_legible = std::any_of(regions.begin(), regions.end(),
                                       [](const auto& region) { return !region.ignored; });
  if (draws.uniform() >= options.p || !has_legible) return whole;
  return find_crop(options, regions, size, draws).value_or(whole);
}

double fitting_scale(const RandomCropWithBBox& options, const cv::Rect& part) {
  return std::min(static_cast<double>(options.crop_size[1]) / part.width,
                  static_cast<double>(options.crop_size[0]) / part.height);
}

void place_crop(const RandomCropWithBBox& options, const cv::Rect& part, double scale,
                const cv::Mat& fitted, Sample& sample) {
  const cv::Size canvas(options.crop_size[1], options.crop_size[0]);
  sample.actual_size = {std::min(fitted.cols, canvas.width), std::min(fitted.rows, canvas.height)};
  const cv::Rect kept({}, sample.actual_size);
  sample.image = cv::Mat::zeros(canvas, fitted.type());
  fitted(kept).copyTo(sample.image(kept));
  for (auto& region : sample.regions) {
    for (auto& corner : region.polygon) {
      const cv::Point2d at = (cv::Point2d(corner) - cv::Point2d(part.tl())) * scale;
      corner = cv::Point2f(at);
    }
  }
}

}  // namespace lockstep::ocr
