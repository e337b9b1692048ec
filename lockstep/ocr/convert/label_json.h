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
  std::string type{};  ///< Written when not empty, as is the next.
  std::string language;
  std::string text;  ///< UTF-8.
  std::vector<LabelPoint> points;
  bool whole = true;           ///< Coordinates are whole numbers, and written so.
  std::vector<double> bezier;  ///< Written when not empty.
};

/// `text` in quotes as Python's json.dumps(ensure_ascii=False) writes it.
std::string json_text(std::string_view text);
/// A number as Python's repr() writes a float: 10.0, 0.1, 1e+16.
std::string json_real(double value);
/// [{"transcription": "text", "points": [[1, 2], ...]}, ...]
std::string label_json(const std::vector<LabelWord>& words);

/// Corners in ascending order of their angle around their mean, as MindOCR sorts them: clockwise on
/// a screen, from the left.
std::vector<LabelPoint> sort_clockwise(std::vector<LabelPoint> points);
/// Twice the area between the corners; >= 0 where they turn left in a system with y upward.
double signed_area(const std::vector<LabelPoint>& points);
/// Simple, with an area.
bool is_valid_polygon(const std::vector<LabelPoint>& points);

}  // namespace lockstep::ocr
