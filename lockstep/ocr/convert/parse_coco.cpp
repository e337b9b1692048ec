// TextOCR and COCO-Text: labels of all pictures in one file of COCO's form.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "lockstep/ocr/convert/json_access.h"
#include "lockstep/ocr/convert/parse_set.h"

namespace lockstep::ocr {
namespace {

/// COCO's three tables: pictures in the order of the file, and the annotations of each.
class CocoTables {
 public:
  CocoTables(const std::string& text, const std::string& file)
      : at_{file, 0}, document_(parse_document(text, file, "imgs", names_)) {}

  /// Calls `see(picture, annotations)` in the order of the file.
  template <class See>
  void each(const See& see) const {
    const nlohmann::json& pictures = member(document_, "imgs", at_);
    const nlohmann::json& lists = member(document_, "imgToAnns", at_);
    const nlohmann::json& all = member(document_, "anns", at_);
    std::unordered_set<std::string> seen;
    for (const auto& name : names_) {
      if (!seen.insert(name).second) continue;
      const nlohmann::json& picture = member(pictures, name, at_);
      std::vector<const nlohmann::json*> annotations;
      for (const nlohmann::json& id : list_in(lists, key_of(member(picture, "id", at_)), at_)) {
        annotations.push_back(&member(all, key_of(id), at_));
      }
      see(picture, annotations);
    }
  }

  const LinePlace& at() const { return at_; }

 private:
  static std::string key_of(const nlohmann::json& id) {
    return id.is_string() ? id.get<std::string>() : id.dump();
  }

  LinePlace at_;
  std::vector<std::string> names_;
  nlohmann::json document_;
};

/// Sets the corners, or the box if they cross and are not four.
void set_textocr_points(const nlohmann::json& entry, const LinePlace& at, LabelWord& word) {
  word.points = flat_points(member(entry, "points", at), at);
  if (word.points.size() < 3) throw_bad_label(at, "a text of fewer than three points");
  if (is_valid_polygon(word.points)) {
    if (signed_area(word.points) < 0) std::reverse(word.points.begin(), word.points.end());
  } else if (word.points.size() == 4) {
    word.points = sort_clockwise(std::move(word.points));
  } else {
    const nlohmann::json& list = member(entry, "bbox", at);
    const auto box = numbers_of(list, at);
    if (box.size() != 4) throw_bad_label(at, "a bbox of other than four numbers");
    const double x = box[0], y = box[1], right = x + box[2], bottom = y + box[3];
    word.points = {{x, y}, {right, y}, {right, bottom}, {x, bottom}};
    for (const nlohmann::json& number : list) word.whole = word.whole && number.is_number_integer();
  }
}

LabelWord cocotext_word(const nlohmann::json& entry, const LinePlace& at) {
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

std::vector<LabelledPicture> parse_textocr(const std::string& text, const std::string& file,
                                           LabelNotes& /*notes*/) {
  std::vector<LabelledPicture> pictures;
  const CocoTables tables(text, file);
  tables.each(
      [&](const nlohmann::json& picture, const std::vector<const nlohmann::json*>& annotations) {
        LabelledPicture labelled{last_part(text_in(picture, "file_name", tables.at())), {}};
        for (const nlohmann::json* entry : annotations) {
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
  tables.each(
      [&](const nlohmann::json& picture, const std::vector<const nlohmann::json*>& annotations) {
        if (text_in(picture, "set", tables.at()) != split) return;
        LabelledPicture labelled{text_in(picture, "file_name", tables.at()), {}};
        bool is_legible = false;
        for (const nlohmann::json* entry : annotations) {
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
