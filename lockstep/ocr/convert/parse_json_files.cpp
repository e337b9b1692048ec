// LSVT, ArT and CTW: labels of all pictures in one file of JSON, or of JSON lines.
#include <fmt/format.h>

#include <opencv2/imgproc.hpp>

#include "lockstep/ocr/convert/json_access.h"
#include "lockstep/ocr/convert/parse_set.h"

namespace lockstep::ocr {
namespace {

using nlohmann::json;

/// The convex hull, with OpenCV's order and number type.
template <typename Point>
std::vector<LabelPoint> hull_of(const std::vector<LabelPoint>& points) {
  using Number = decltype(Point::x);
  std::vector<Point> given, hull;
  for (const auto& point : points) {
    given.emplace_back(static_cast<Number>(point.x), static_cast<Number>(point.y));
  }
  cv::convexHull(given, hull);
  std::vector<LabelPoint> result;
  for (const auto& point : hull) {
    result.push_back({static_cast<double>(point.x), static_cast<double>(point.y)});
  }
  return result;
}

/// One text of LSVT or ArT.
LabelWord art_word(const json& entry, bool has_language, const LinePlace& at) {
  LabelWord word;
  word.points = nested_points(member(entry, "points", at), at, word.whole);
  const auto text = text_in(entry, "transcription", at);
  word.text = is_true(member(entry, "illegibility", at)) ? "###" : text;
  if (has_language) word.language = text_in(entry, "language", at);
  return word;
}

std::vector<LabelWord> art_words(const json& entries, bool has_language, const std::string& name,
                                 const LinePlace& at, LabelNotes& notes) {
  std::vector<LabelWord> words;
  if (!entries.is_array()) throw_bad_label(at, fmt::format("'{}' is no list", name));
  for (const json& entry : entries) {
    LabelWord word = art_word(entry, has_language, at);
    if (!has_area(word, name, notes)) continue;
    if (!is_valid_polygon(word.points)) {
      notes.push_back(
          fmt::format("{}: the invalid polygon of '{}' becomes its hull", name, word.text));
      word.points =
          word.whole ? hull_of<cv::Point>(word.points) : hull_of<cv::Point2f>(word.points);
    }
    words.push_back(std::move(word));
  }
  return words;
}

LabelWord ctw_sentence(const json& characters, const LinePlace& at) {
  if (!characters.is_array()) throw_bad_label(at, "a sentence that is no list");
  LabelWord word;
  std::vector<LabelPoint> corners;
  bool whole = true;
  for (const json& character : characters) {
    word.text += text_in(character, "text", at);
    const auto polygon = nested_points(member(character, "polygon", at), at, whole);
    corners.insert(corners.end(), polygon.begin(), polygon.end());
  }
  word.whole = false;
  if (!corners.empty()) word.points = hull_of<cv::Point2f>(corners);
  return word;
}

}  // namespace

std::map<std::string, std::vector<LabelWord>> parse_art(const std::string& text,
                                                        const std::string& file, bool has_language,
                                                        LabelNotes& notes) {
  std::map<std::string, std::vector<LabelWord>> pictures;
  const json document = parse_document(text, file);
  for (const auto& [name, entries] : document.items()) {
    pictures.emplace(name, art_words(entries, has_language, name, {file, 0}, notes));
  }
  return pictures;
}

std::vector<LabelledPicture> parse_ctw(const std::string& text, const std::string& file,
                                       LabelNotes& notes) {
  std::vector<LabelledPicture> pictures;
  int64_t number = 0;
  for (const std::string& line : text_lines(text, file)) {
    const std::string where = fmt::format("{}:{}", file, ++number);
    const LinePlace at{where, 0};
    const json document = parse_document(line, where);
    LabelledPicture picture{text_in(document, "file_name", at), {}};
    const auto add = [&](LabelWord word) {
      if (has_area(word, where, notes)) picture.words.push_back(std::move(word));
    };
    for (const json& sentence : list_in(document, "annotations", at)) {
      add(ctw_sentence(sentence, at));
    }
    for (const json& ignored : list_in(document, "ignore", at)) {
      LabelWord word;
      word.text = "###";
      word.points = nested_points(member(ignored, "polygon", at), at, word.whole);
      add(std::move(word));
    }
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

}  // namespace lockstep::ocr
