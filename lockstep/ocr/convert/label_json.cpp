#include "lockstep/ocr/convert/label_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "lockstep/ocr/geometry/region.h"

namespace lockstep::ocr {
namespace {

std::string json_point(const LabelPoint& point, bool whole) {
  if (!whole) return fmt::format("[{}, {}]", json_real(point.x), json_real(point.y));
  return fmt::format("[{:.0f}, {:.0f}]", point.x + 0.0, point.y + 0.0);  // -0.0 + 0.0 is 0.0
}

std::string json_word(const LabelWord& word) {
  std::string text = "{";
  if (!word.type.empty()) text += "\"type\": " + json_text(word.type) + ", ";
  if (!word.language.empty()) text += "\"language\": " + json_text(word.language) + ", ";
  text += "\"transcription\": " + json_text(word.text) + ", \"points\": [";
  for (size_t i = 0; i < word.points.size(); ++i) {
    text += (i == 0 ? "" : ", ") + json_point(word.points[i], word.whole);
  }
  text += "]";
  if (!word.bezier.empty()) {
    text += ", \"bezier\": [";
    for (size_t i = 0; i < word.bezier.size(); ++i) {
      text += (i == 0 ? "" : ", ") + json_real(word.bezier[i]);
    }
    text += "]";
  }
  return text + "}";
}

}  // namespace

std::string json_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    switch (letter) {
      case '"':
        quoted += "\\\"";
        break;
      case '\\':
        quoted += "\\\\";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\r':
        quoted += "\\r";
        break;
      case '\t':
        quoted += "\\t";
        break;
      case '\b':
        quoted += "\\b";
        break;
      case '\f':
        quoted += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(letter) < 0x20) {
          quoted += fmt::format("\\u{:04x}", static_cast<int>(letter));
        } else {
          quoted += letter;
        }
    }
  }
  return quoted + '"';
}

std::string json_real(double value) {
  std::array<char, 400> buffer;
  const double size = std::abs(value);
  const bool plain = value == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format).ptr;
  std::string text(buffer.data(), end);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string label_json(const std::vector<LabelWord>& words) {
  std::string text = "[";
  for (size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : ", ") + json_word(words[i]);
  return text + "]";
}

std::vector<LabelPoint> sort_clockwise(std::vector<LabelPoint> points) {
  LabelPoint mean;
  for (const LabelPoint& point : points) {
    mean.x += point.x;
    mean.y += point.y;
  }
  mean.x /= static_cast<double>(points.size());
  mean.y /= static_cast<double>(points.size());
  std::vector<std::pair<double, LabelPoint>> by_angle;
  for (const LabelPoint& point : points) {
    by_angle.emplace_back(
        std::fmod(std::atan2(point.y - mean.y, point.x - mean.x) + M_PI, 2 * M_PI), point);
  }
  std::stable_sort(by_angle.begin(), by_angle.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < points.size(); ++i) points[i] = by_angle[i].second;
  return points;
}

double signed_area(const std::vector<LabelPoint>& points) {
  double area = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const LabelPoint& a = points[i];
    const LabelPoint& b = points[(i + 1) % points.size()];
    area += a.x * b.y - b.x * a.y;
  }
  return area;
}

bool is_valid_polygon(const std::vector<LabelPoint>& points) {
  Polygon polygon;
  for (const LabelPoint& point : points) {
    polygon.emplace_back(static_cast<float>(point.x), static_cast<float>(point.y));
  }
  return Region(polygon).valid();
}

}  // namespace lockstep::ocr
