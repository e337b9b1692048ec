#pragma once
// Intersections of two polygons, by GEOS. Shapely, the source of MindOCR's figures, is built on the
// same library. GEOS works on unrounded coordinates (Clipper would round them to a grid), and its
// answers, also on validity, are Shapely's.

#include <memory>

#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

/// A polygon prepared for queries. Movable; not thread-safe. Intersections of an invalid region
/// throw Error(kCorrupt) if GEOS finds no answer.
class Region {
 public:
  /// Any number of corners; fewer than three, or a coordinate that is no number: invalid.
  explicit Region(const Polygon& polygon);
  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;
  ~Region();

  /// Simple, with an area: edges neither cross nor touch. Repeated corners are allowed.
  bool valid() const;
  /// The reason, for a message: "Self-intersection[10 5]". Empty if valid.
  std::string fault() const;

  double area() const { return area_; }  ///< Pixels squared.

  bool intersects(const Region& other) const;  ///< They have a common point, even on the edge.

  /// Common area in pixels squared. Cost: none if bounding boxes are disjoint, else about 20 us.
  double intersection_area(const Region& other) const;

  /// Intersection over union, 0 .. 1; 0 if both are empty.
  double iou(const Region& other) const;

  /// Outer rings of the common area, without holes and bare lines; a ring's last corner does not
  /// repeat its first. From the largest to the smallest.
  std::vector<Polygon> intersection(const Region& other) const;

 private:
  struct Shape;
  std::unique_ptr<Shape> shape_;
  cv::Rect2d bounds_;
  double area_ = 0;
};

}  // namespace lockstep::ocr
