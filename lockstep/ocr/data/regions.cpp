#include "lockstep/ocr/data/regions.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/error.h"
#include "lockstep/ocr/geometry/polygon.h"
#include "lockstep/ocr/geometry/region.h"
#include "lockstep/ocr/text/unicode.h"

namespace lockstep::ocr {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse_region(size_t entry, const std::string& why) {
  throw Error(ErrorCode::kCorrupt, fmt::format("label: entry {}: {}", entry, why));
}

float coordinate(const Json& value, size_t entry) {
  if (!value.is_number()) refuse_region(entry, "'points' holds something else than numbers");
  const auto number = value.get<double>();
  if (!(std::abs(number) <= kMaxCoordinate)) {
    refuse_region(entry, fmt::format("a coordinate of {} is beyond any image", number));
  }
  return static_cast<float>(number);
}

Polygon read_polygon(const Json& item, size_t entry) {
  const auto points = item.find("points");
  if (points == item.end() || !points->is_array() || points->empty()) {
    refuse_region(entry, "no list 'points' of [x, y] pairs");
  }
  Polygon polygon;
  polygon.reserve(points->size());
  for (const auto& point : *points) {
    if (!point.is_array() || point.size() != 2) {
      refuse_region(entry, fmt::format("point {} is not [x, y]", polygon.size() + 1));
    }
    polygon.emplace_back(coordinate(point[0], entry), coordinate(point[1], entry));
  }
  return polygon;
}

std::string read_text(const Json& item, size_t entry) {
  const auto text = item.find("transcription");
  if (text == item.end()) refuse_region(entry, "no text 'transcription'");
  return text->is_string() ? text->get<std::string>() : text->dump();
}

/// A fast check: nearly all regions are convex quadrilaterals.
bool is_convex_quadrilateral(const Polygon& polygon) {
  if (polygon.size() != 4) return false;
  int turns = 0;
  for (size_t i = 0; i < 4; ++i) {
    const cv::Point2d a = polygon[i], b = polygon[(i + 1) % 4], c = polygon[(i + 2) % 4];
    const double turn = (b - a).cross(c - b);
    turns += turn > 0 ? 1 : turn < 0 ? -1 : 0;
  }
  return turns == 4 || turns == -4;
}

}  // namespace

std::vector<TextRegion> parse_regions(std::string_view json) {
  const Json list = Json::parse(json, nullptr, false);
  if (!list.is_array()) {
    throw Error(ErrorCode::kCorrupt, "label: not a JSON list of {\"transcription\", \"points\"}");
  }
  std::vector<TextRegion> regions;
  regions.reserve(list.size());
  for (const auto& item : list) {
    const size_t entry = regions.size() + 1;
    if (!item.is_object()) refuse_region(entry, "not {\"transcription\", \"points\"}");
    TextRegion region{read_polygon(item, entry), read_text(item, entry)};
    region.ignored = region.text == "###" || region.text == "*";
    regions.push_back(std::move(region));
  }
  return regions;
}

void ignore_unusable(std::vector<TextRegion>& regions, std::vector<std::string>& remarks) {
  for (size_t i = 0; i < regions.size(); ++i) {
    auto& [polygon, text, ignored] = regions[i];
    if (ignored || is_convex_quadrilateral(polygon)) continue;
    std::string fault = polygon.size() < 3   ? fmt::format("{} corners", polygon.size())
                        : area(polygon) <= 0 ? "no area"
                                             : Region(polygon).fault();
    if (fault.empty()) continue;
    ignored = true;
    remarks.push_back(
        fmt::format("region {} ('{}') has {}: ignored", i + 1, for_message(text), fault));
  }
}

}  // namespace lockstep::ocr
