#include "lockstep/ocr/postprocess/db.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "lockstep/error.h"
#include "lockstep/ocr/geometry/polygon.h"

namespace lockstep::ocr {
namespace {

using Contour = std::vector<cv::Point>;

constexpr float kLeastSide = 3;       // of a fitted rectangle, pixels
constexpr float kLeastGrownSide = 5;  // after growing

template <class Point>
Polygon as_polygon(const std::vector<Point>& points) {
  return Polygon(points.begin(), points.end());
}

// The polygon to grow: the rectangle around the contour, or the simplified contour.
std::optional<Polygon> outline(const Contour& contour, DbPostprocessOptions::Box type) {
  if (type == DbPostprocessOptions::Box::kQuad) {
    const FittedBox box = fit_box(contour);
    if (box.short_side < kLeastSide) return std::nullopt;
    return Polygon(box.corners.begin(), box.corners.end());
  }
  Contour simple;
  cv::approxPolyDP(contour, simple, 0.005 * cv::arcLength(contour, true), true);
  if (simple.size() < 4) return std::nullopt;
  return as_polygon(simple);
}

std::optional<Polygon> region_of(const Contour& contour, const DbPostprocessOptions& options) {
  const std::optional<Polygon> text = outline(contour, options.box_type);
  if (!text) return std::nullopt;
  const std::vector<Contour> grown =
      offset(*text, area(*text) * options.expand_ratio / perimeter(*text));
  if (grown.size() != 1) return std::nullopt;
  const FittedBox box = fit_box(grown[0]);
  if (box.short_side < kLeastGrownSide) return std::nullopt;
  if (options.box_type == DbPostprocessOptions::Box::kPoly) return as_polygon(grown[0]);
  return Polygon(box.corners.begin(), box.corners.end());
}

// Real: float for quads, whose corners are fractions, double for whole pixels. NumPy divides in the
// same types, so quotients near a half round alike.
template <class Real>
float to_source(float at, float scale, float length) {
  const Real rounded = std::nearbyint(static_cast<Real>(at) / static_cast<Real>(scale));
  return static_cast<float>(
      std::clamp(rounded, static_cast<Real>(0), static_cast<Real>(length - 1)));
}

void rescale(Polygon& polygon, const ResizeRecord& resize, DbPostprocessOptions::Box type) {
  const auto map = type == DbPostprocessOptions::Box::kQuad ? to_source<float> : to_source<double>;
  for (cv::Point2f& at : polygon) {
    at.x = map(at.x, resize.scale_width, resize.src_width);
    at.y = map(at.y, resize.scale_height, resize.src_height);
  }
}

}  // namespace

double box_score(const cv::Mat& probability, const cv::Mat& bitmap, const Contour& contour) {
  const cv::Rect box = cv::boundingRect(contour);
  return cv::mean(probability(box), bitmap(box))[0];
}

std::vector<DetectedRegion> db_postprocess(const cv::Mat& probability,
                                           const std::optional<ResizeRecord>& resize,
                                           const DbPostprocessOptions& options) {
  if (probability.type() != CV_32FC1 || probability.dims != 2) {
    throw Error(ErrorCode::kInvalidArgument,
                "detection: the map of probabilities is not a matrix of 32-bit floats");
  }
  const cv::Mat bitmap = probability >= options.binary_thresh;
  std::vector<Contour> contours;
  cv::findContours(bitmap, contours, cv::RETR_LIST, cv::CHAIN_APPROX_SIMPLE);
  if (contours.size() > static_cast<size_t>(options.max_candidates)) {
    contours.resize(static_cast<size_t>(options.max_candidates));
  }

  std::vector<DetectedRegion> found;
  for (const Contour& contour : contours) {
    const double score = box_score(probability, bitmap, contour);
    if (score < options.box_thresh) continue;
    std::optional<Polygon> polygon = region_of(contour, options);
    if (!polygon) continue;
    if (resize) rescale(*polygon, *resize, options.box_type);
    found.push_back({std::move(*polygon), static_cast<float>(score)});
  }
  return found;
}

}  // namespace lockstep::ocr
