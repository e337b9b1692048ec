#include "lockstep/ocr/predict/result_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/base/text.h"
#include "lockstep/ocr/geometry/region.h"

namespace lockstep::ocr {
namespace {

constexpr double kLeastArea = 3;  // pixels squared

// The first corner has the least sum, the third the greatest. Of the others the second has the
// lesser y - x.
void turn_clockwise(Polygon& quad) {
  const auto sum = [](const cv::Point2f& a, const cv::Point2f& b) { return a.x + a.y < b.x + b.y; };
  const auto first = std::min_element(quad.begin(), quad.end(), sum);
  const auto greatest = std::max_element(quad.begin(), quad.end(), sum);
  if (first == greatest) return;  // all in one diagonal line, no area anyway
  Polygon others;
  for (auto at = quad.begin(); at != quad.end(); ++at) {
    if (at != first && at != greatest) others.push_back(*at);
  }
  const auto by_side = [](const cv::Point2f& a, const cv::Point2f& b) {
    return a.y - a.x < b.y - b.x;
  };
  const cv::Point2f right = *std::min_element(others.begin(), others.end(), by_side);
  const cv::Point2f left = *std::max_element(others.begin(), others.end(), by_side);
  quad = {*first, right, *greatest, left};
}

}  // namespace

std::string corners_text(const Polygon& polygon) {
  std::string text = "[";
  for (const cv::Point2f& at : polygon) {
    if (text.size() > 1) text += ", ";
    text += fmt::format("[{}, {}]", static_cast<int>(at.x), static_cast<int>(at.y));
  }
  return text + "]";
}

std::vector<Polygon> checked_regions(std::span<const DetectedRegion> found,
                                     const cv::Size& picture) {
  std::vector<Polygon> kept;
  for (const DetectedRegion& one : found) {
    Polygon polygon = one.polygon;
    for (cv::Point2f& at : polygon) {
      at.x = std::clamp(at.x, 0.0F, static_cast<float>(picture.width - 1));
      at.y = std::clamp(at.y, 0.0F, static_cast<float>(picture.height - 1));
    }
    if (polygon.size() == 4) turn_clockwise(polygon);
    const Region region(polygon);
    if (region.valid() && region.area() >= kLeastArea) kept.push_back(std::move(polygon));
  }
  return kept;
}

std::string detection_line(const std::string& file, std::span<const Polygon> regions) {
  std::string list;
  for (const Polygon& one : regions) list += (list.empty() ? "" : ", ") + corners_text(one);
  return without_controls(file) + "\t[" + list + "]";
}

std::string recognition_line(const std::string& file, const std::string& text) {
  return without_controls(file) + "\t" + text;
}

std::string system_line(const std::string& file, std::span<const ReadRegion> regions) {
  std::string list;
  for (const ReadRegion& one : regions) {
    if (!list.empty()) list += ", ";
    list += fmt::format(R"({{"transcription": {}, "points": {}}})", nlohmann::json(one.text).dump(),
                        corners_text(one.polygon));
  }
  return without_controls(file) + "\t[" + list + "]";
}

}  // namespace lockstep::ocr
