#include "lockstep/ocr/geometry/region.h"

#include <fmt/format.h>
#include <geos_c.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"
#include "lockstep/ocr/geometry/polygon.h"

namespace lockstep::ocr {
namespace {

// GEOS's state of one thread, with its latest error message.
class Geos {
 public:
  Geos() : handle_(GEOS_init_r()) {
    GEOSContext_setErrorMessageHandler_r(
        handle_, [](const char* text, void* out) { static_cast<std::string*>(out)->assign(text); },
        &error_);
  }
  ~Geos() { GEOS_finish_r(handle_); }
  Geos(const Geos&) = delete;
  Geos& operator=(const Geos&) = delete;

  GEOSContextHandle_t handle() const { return handle_; }
  [[noreturn]] void fail() const {
    throw Error(ErrorCode::kCorrupt, fmt::format("polygons have no intersection: {}", error_));
  }

 private:
  GEOSContextHandle_t handle_;
  std::string error_;
};

Geos& geos() {
  thread_local Geos state;
  return state;
}

using Geometry = std::unique_ptr<GEOSGeometry, void (*)(GEOSGeometry*)>;

Geometry owned(GEOSGeometry* geometry) {
  return {geometry, [](GEOSGeometry* one) { GEOSGeom_destroy_r(geos().handle(), one); }};
}

// Null if GEOS refuses; its validity test reports coordinates that are no numbers.
Geometry geometry_of(const Polygon& polygon) {
  GEOSContextHandle_t h = geos().handle();
  std::vector<double> xy;
  for (const cv::Point2f& at : polygon) xy.insert(xy.end(), {at.x, at.y});
  xy.insert(xy.end(), {polygon.front().x, polygon.front().y});
  const auto corners = static_cast<unsigned>(polygon.size() + 1);
  GEOSCoordSequence* sequence = GEOSCoordSeq_copyFromBuffer_r(h, xy.data(), corners, 0, 0);
  if (sequence == nullptr) return owned(nullptr);
  GEOSGeometry* ring = GEOSGeom_createLinearRing_r(h, sequence);  // takes the sequence
  if (ring == nullptr) return owned(nullptr);
  return owned(GEOSGeom_createPolygon_r(h, ring, nullptr, 0));  // takes the ring
}

bool finite(const Polygon& polygon) {
  return std::all_of(polygon.begin(), polygon.end(), [](const cv::Point2f& at) {
    return std::isfinite(at.x) && std::isfinite(at.y);
  });
}

cv::Rect2d bounds_of(const Polygon& polygon) {
  cv::Point2d low = polygon.front();
  cv::Point2d high = low;
  for (const cv::Point2f& at : polygon) {
    low = {std::min<double>(low.x, at.x), std::min<double>(low.y, at.y)};
    high = {std::max<double>(high.x, at.x), std::max<double>(high.y, at.y)};
  }
  return {low, high};
}

// Closed rectangles, unlike OpenCV's: a common edge counts as overlap.
bool apart(const cv::Rect2d& a, const cv::Rect2d& b) {
  return a.x > b.x + b.width || b.x > a.x + a.width || a.y > b.y + b.height || b.y > a.y + a.height;
}

Polygon outer_ring(const GEOSGeometry* polygon) {
  GEOSContextHandle_t h = geos().handle();
  const GEOSGeometry* ring = GEOSGetExteriorRing_r(h, polygon);
  const GEOSCoordSequence* sequence = GEOSGeom_getCoordSeq_r(h, ring);
  unsigned corners = 0;
  if (sequence == nullptr || GEOSCoordSeq_getSize_r(h, sequence, &corners) == 0) geos().fail();
  Polygon result;
  for (unsigned i = 0; i + 1 < corners; ++i) {
    double x = 0;
    double y = 0;
    GEOSCoordSeq_getXY_r(h, sequence, i, &x, &y);
    result.emplace_back(static_cast<float>(x), static_cast<float>(y));
  }
  return result;
}

}  // namespace

struct Region::Shape {
  Geometry geometry = owned(nullptr);  // null: no polygon at all

  Geometry common(const Shape& other) const {
    Geometry found =
        owned(GEOSIntersection_r(geos().handle(), geometry.get(), other.geometry.get()));
    if (!found) geos().fail();
    return found;
  }
};

Region::Region(const Polygon& polygon) : shape_(std::make_unique<Shape>()) {
  if (polygon.size() < 3 || !finite(polygon)) return;
  shape_->geometry = geometry_of(polygon);
  bounds_ = bounds_of(polygon);
  area_ = ocr::area(polygon);
}
Region::Region(Region&&) noexcept = default;
Region& Region::operator=(Region&&) noexcept = default;
Region::~Region() = default;

bool Region::valid() const {
  return shape_->geometry && GEOSisValid_r(geos().handle(), shape_->geometry.get()) == 1;
}

std::string Region::fault() const {
  if (valid()) return {};
  if (!shape_->geometry) return "needs three corners of finite numbers";
  char* reason = GEOSisValidReason_r(geos().handle(), shape_->geometry.get());
  std::string text = reason == nullptr ? "invalid" : reason;
  GEOSFree_r(geos().handle(), reason);
  return text;
}

bool Region::intersects(const Region& other) const {
  if (!shape_->geometry || !other.shape_->geometry || apart(bounds_, other.bounds_)) return false;
  const char answer =
      GEOSIntersects_r(geos().handle(), shape_->geometry.get(), other.shape_->geometry.get());
  if (answer == 2) geos().fail();
  return answer == 1;
}

double Region::intersection_area(const Region& other) const {
  if (!shape_->geometry || !other.shape_->geometry || apart(bounds_, other.bounds_)) return 0;
  const Geometry found = shape_->common(*other.shape_);
  double common = 0;
  if (GEOSArea_r(geos().handle(), found.get(), &common) == 0) geos().fail();
  return common;
}

double Region::iou(const Region& other) const {
  const double common = intersection_area(other);
  const double all = area_ + other.area_ - common;
  return all > 0 ? common / all : 0;
}

std::vector<Polygon> Region::intersection(const Region& other) const {
  if (!intersects(other)) return {};
  GEOSContextHandle_t h = geos().handle();
  const Geometry found = shape_->common(*other.shape_);
  std::vector<Polygon> rings;
  for (int i = 0; i < GEOSGetNumGeometries_r(h, found.get()); ++i) {
    const GEOSGeometry* part = GEOSGetGeometryN_r(h, found.get(), i);
    if (GEOSGeomTypeId_r(h, part) != GEOS_POLYGON || GEOSisEmpty_r(h, part) != 0) continue;
    rings.push_back(outer_ring(part));
  }
  std::stable_sort(rings.begin(), rings.end(),
                   [](const Polygon& a, const Polygon& b) { return ocr::area(a) > ocr::area(b); });
  return rings;
}

}  // namespace lockstep::ocr
