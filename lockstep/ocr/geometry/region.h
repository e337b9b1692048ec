#pragma once
// What two polygons have in common. By GEOS, the library below Shapely, with which MindOCR's
// figures were made: it works on the coordinates as they are (Clipper would round them to a grid)
// and its answers, also on what is valid, are Shapely's.

#include <memory>

#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

/// A polygon prepared for questions about it. Moves; one thread at a time.
/// Intersections of an invalid region throw Error(kCorrupt) where GEOS finds no answer.
class Region {
 public:
  /// Any number of corners; fewer than three, or a coordinate that is no number: invalid.
  explicit Region(const Polygon& polygon);
  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;
  ~Region();

  /// Simple, with an area: edges neither cross nor touch. Repeated corners are no fault.
  bool valid() const;
  /// Why not, for a message: "Self-intersection[10 5]". Empty when valid.
  std::string fault() const;

  double area() const { return area_; }  ///< Pixels squared.

  bool intersects(const Region& other) const;  ///< A common point, be it on the edge.

  /// Common area in pixels squared. Cost: none where bounding boxes are apart, else about 20 us.
  double intersection_area(const Region& other) const;

  /// Intersection over union, 0 .. 1; 0 when both are empty.
  double iou(const Region& other) const;

  /// Outer rings of what is common to both, holes and bare lines left out; a ring's last corner
  /// does not repeat its first. From the largest to the smallest.
  std::vector<Polygon> intersection(const Region& other) const;

 private:
  struct Shape;
  std::unique_ptr<Shape> shape_;
  cv::Rect2d bounds_;
  double area_ = 0;
};

}  // namespace lockstep::ocr
