#pragma once
// MindOCR's label of a detection image.

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ocr {

struct LabelPoint {
  double x = 0;
  double y = 0;
};

struct LabelWord {
  std::string type{};  ///< Written if not empty, as is the next.
  std::string language;
  std::string text;  ///< UTF-8.
  std::vector<LabelPoint> points;
  bool whole = true;           ///< Coordinates are whole numbers, and written as such.
  std::vector<double> bezier;  ///< Written if not empty.
};

/// `text` in quotes, as in Python's json.dumps(ensure_ascii=False).
std::string json_text(std::string_view text);
/// A number as Python's repr() of a float: 10.0, 0.1, 1e+16.
std::string json_real(double value);
/// [{"transcription": "text", "points": [[1, 2], ...]}, ...]
std::string label_json(const std::vector<LabelWord>& words);

/// Corners in ascending order of their angle around their mean, as in MindOCR: clockwise on a
/// screen, from the left.
std::vector<LabelPoint> sort_clockwise(std::vector<LabelPoint> points);
/// Twice the area between the corners; >= 0 if they turn left in a system with y upward.
double signed_area(const std::vector<LabelPoint>& points);
/// Whether it is simple and has an area.
bool is_valid_polygon(const std::vector<LabelPoint>& points);

}  // namespace lockstep::ocr
