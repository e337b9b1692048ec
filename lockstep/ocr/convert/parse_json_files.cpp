// Sets whose labels stand in one JSON file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <unordered_set>

#include "lockstep/ocr/convert/json_access.h"
#include "lockstep/ocr/convert/parse_set.h"
#include "lockstep/ocr/text/unicode.h"

namespace lockstep::ocr {
namespace {

using nlohmann::json;

/// The convex hull, in OpenCV's order and numbers.
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

bool has_area(const LabelWord& word, const std::string& where, LabelNotes& notes) {
  if (word.points.size() >= 3) return true;
  notes.push_back(fmt::format("{}: skipping the invalid polygon of '{}'", where, word.text));
  return false;
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
      if (!has_area(word, name, notes)) continue;
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

/// COCO's three tables: pictures in the order of the file, and the annotations of each.
class CocoTables {
 public:
  CocoTables(const std::string& text, const std::string& file)
      : at_{file, 0}, document_(parse_document(text, file, "imgs", names_)) {}

  /// Calls `see(picture, annotations)` in the order of the file.
  template <class See>
  void each(const See& see) const {
    const json& pictures = member(document_, "imgs", at_);
    const json& lists = member(document_, "imgToAnns", at_);
    const json& all = member(document_, "anns", at_);
    std::unordered_set<std::string> seen;
    for (const auto& name : names_) {
      if (!seen.insert(name).second) continue;
      const json& picture = member(pictures, name, at_);
      std::vector<const json*> annotations;
      for (const json& id : list_in(lists, key_of(member(picture, "id", at_)), at_)) {
        annotations.push_back(&member(all, key_of(id), at_));
      }
      see(picture, annotations);
    }
  }

  const LinePlace& at() const { return at_; }

 private:
  static std::string key_of(const json& id) {
    return id.is_string() ? id.get<std::string>() : id.dump();
  }

  LinePlace at_;
  std::vector<std::string> names_;
  json document_;
};

/// The corners, or, where they cross and are not four, the box.
void set_textocr_points(const json& entry, const LinePlace& at, LabelWord& word) {
  word.points = flat_points(member(entry, "points", at), at);
  if (word.points.size() < 3) throw_bad_label(at, "a text of fewer than three points");
  if (is_valid_polygon(word.points)) {
    if (signed_area(word.points) < 0) std::reverse(word.points.begin(), word.points.end());
  } else if (word.points.size() == 4) {
    word.points = sort_clockwise(std::move(word.points));
  } else {
    const json& list = member(entry, "bbox", at);
    const auto box = numbers_of(list, at);
    if (box.size() != 4) throw_bad_label(at, "a bbox of other than four numbers");
    const double x = box[0], y = box[1], right = x + box[2], bottom = y + box[3];
    word.points = {{x, y}, {right, y}, {right, bottom}, {x, bottom}};
    for (const json& number : list) word.whole = word.whole && number.is_number_integer();
  }
}

LabelWord cocotext_word(const json& entry, const LinePlace& at) {
  LabelWord word;
  word.type = text_in(entry, "class", at);
  word.language = text_in(entry, "language", at);
  const bool is_legible = text_in(entry, "legibility", at) == "legible";
  const bool has_text = is_legible && entry.contains("utf8_string");
  word.text = has_text ? text_in(entry, "utf8_string", at) : "###";
  word.points = flat_points(member(entry, "polygon", at), at);
  if (word.points.size() >= 3) word.points = sort_clockwise(std::move(word.points));
  return word;
}

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
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

std::vector<LabelledPicture> parse_textocr(const std::string& text, const std::string& file,
                                           LabelNotes& /*notes*/) {
  std::vector<LabelledPicture> pictures;
  const CocoTables tables(text, file);
  tables.each([&](const json& picture, const std::vector<const json*>& annotations) {
    LabelledPicture labelled{last_part(text_in(picture, "file_name", tables.at())), {}};
    for (const json* entry : annotations) {
      LabelWord word;
      word.text = text_in(*entry, "utf8_string", tables.at());
      if (word.text == ".") word.text = "###";
      set_textocr_points(*entry, tables.at(), word);
      labelled.words.push_back(std::move(word));
    }
    pictures.push_back(std::move(labelled));
  });
  return pictures;
}

std::vector<LabelledPicture> parse_cocotext(const std::string& text, const std::string& file,
                                            const std::string& split, LabelNotes& notes) {
  std::vector<LabelledPicture> pictures;
  const CocoTables tables(text, file);
  tables.each([&](const json& picture, const std::vector<const json*>& annotations) {
    if (text_in(picture, "set", tables.at()) != split) return;
    LabelledPicture labelled{text_in(picture, "file_name", tables.at()), {}};
    bool is_legible = false;
    for (const json* entry : annotations) {
      LabelWord word = cocotext_word(*entry, tables.at());
      if (!has_area(word, labelled.name, notes)) continue;
      if (!is_valid_polygon(word.points)) {
        notes.push_back(
            fmt::format("{}: skipping the invalid polygon of '{}'", labelled.name, word.text));
        continue;
      }
      is_legible = is_legible || word.text != "###";
      labelled.words.push_back(std::move(word));
    }
    if (is_legible) pictures.push_back(std::move(labelled));
  });
  return pictures;
}

}  // namespace lockstep::ocr
