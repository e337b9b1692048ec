#include "lockstep/ocr/transforms/validate.h"

#include "lockstep/error.h"
#include "lockstep/ocr/geometry/polygon.h"
#include "lockstep/ocr/geometry/region.h"

namespace lockstep::ocr {
namespace {

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

/// Carries out the options on one region that may be partly outside; false: none of it is visible.
bool look_at(const ValidatePolygons& options, const Window& window, TextRegion& text) {
  const Region region(text.polygon);
  if (!region.valid()) {  // ignored since its label was read; its mask is drawn, and no more
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
