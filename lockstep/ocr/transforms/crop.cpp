#include "lockstep/ocr/transforms/crop.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/ocr/geometry/polygon.h"
#include "lockstep/ocr/geometry/region.h"

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

/// Rounds halves to the even number; a place before the first line counts as on it.
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

struct Box {
  float left, top, right, bottom;
};

Box bounds_of(const Polygon& polygon) {
  Box box{polygon.front().x, polygon.front().y, polygon.front().x, polygon.front().y};
  for (const auto& corner : polygon) {
    box = {std::min(box.left, corner.x), std::min(box.top, corner.y), std::max(box.right, corner.x),
           std::max(box.bottom, corner.y)};
  }
  return box;
}

class Window {
 public:
  explicit Window(cv::Size size)
      : width_(static_cast<float>(size.width)),
        height_(static_cast<float>(size.height)),
        region_(Polygon{{0, 0}, {width_, 0}, {width_, height_}, {0, height_}}) {}

  bool holds(const Box& box) const {
    return box.left >= 0 && box.top >= 0 && box.right <= width_ && box.bottom <= height_;
  }
  bool misses(const Box& box) const {
    return box.right < 0 || box.bottom < 0 || box.left > width_ || box.top > height_;
  }
  const Region& region() const { return region_; }

 private:
  float width_, height_;
  Region region_;
};

/// Applies the options to one region that may be partly outside; false: none of it is visible.
bool look_at(const ValidatePolygons& options, const Window& window, TextRegion& text) {
  const Region region(text.polygon);
  if (!region.valid()) {  // ignored since its label was read; only its mask is drawn
    text.ignored = true;
    return true;
  }
  if (!region.intersects(window.region())) return false;
  if (region.intersection_area(window.region()) < options.min_area) text.ignored = true;
  if (!options.clip_to_visible_area) return true;
  auto visible = region.intersection(window.region());
  if (visible.empty()) return false;
  text.polygon = std::move(visible.front());
  if (text.polygon.size() < static_cast<size_t>(options.min_vertices)) text.ignored = true;
  return true;
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

void validate_polygons(const ValidatePolygons& options, Sample& sample) {
  const Window window(sample.actual_size.empty() ? sample.image.size() : sample.actual_size);
  std::erase_if(sample.regions, [&](TextRegion& text) {
    const Box box = bounds_of(text.polygon);
    if (window.misses(box)) return true;
    if (!window.holds(box)) return !look_at(options, window, text);
    if (area(text.polygon) < options.min_area) text.ignored = true;
    return false;
  });
}

}  // namespace lockstep::ocr
