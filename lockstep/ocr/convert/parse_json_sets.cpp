#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "lockstep/ocr/convert/json_access.h"
#include "lockstep/ocr/convert/parse_set.h"

namespace lockstep::ocr {
namespace {

using nlohmann::json;

/// SynText-150k numbers the printable ASCII characters; 95 is any other.
std::string spell(const json& ids, const LinePlace& at) {
  std::string text;
  for (const double id : numbers_of(ids, at)) {
    if (id == 95) text += "口";
    if (id >= 0 && id < 95) text += static_cast<char>(' ' + static_cast<int>(id));
  }
  return text;
}

LabelWord syntext_word(const json& entry, const LinePlace& at) {
  const auto box = numbers_of(member(entry, "bbox", at), at);
  if (box.size() != 4) throw_bad_label(at, "a bbox of other than four numbers");
  const double left = std::trunc(box[0]), top = std::trunc(box[1]);
  const double right = std::trunc(box[0] + box[2]), bottom = std::trunc(box[1] + box[3]);
  LabelWord word;
  word.points = {{left, top}, {right, top}, {right, bottom}, {left, bottom}};
  word.text = spell(member(entry, "rec", at), at);
  word.bezier = numbers_of(member(entry, "bezier_pts", at), at);
  return word;
}

}  // namespace

std::vector<LabelWord> parse_rects(const std::string& text, const std::string& file,
                                   LabelNotes& notes) {
  const json document = parse_document(text, file);
  const LinePlace at{file, 0};
  std::vector<LabelWord> words;
  for (const json& line : list_in(document, "lines", at)) {
    LabelWord word;
    word.points = flat_points(member(line, "points", at), at);
    word.text = is_true(member(line, "ignore", at)) ? "###" : text_in(line, "transcription", at);
    if (is_valid_polygon(word.points)) {
      words.push_back(std::move(word));
    } else {
      notes.push_back(fmt::format("{}: skipping the invalid polygon of '{}'", file, word.text));
    }
  }
  return words;
}

std::vector<SynTextImage> parse_syntext150k(const std::string& text, const std::string& file) {
  const json document = parse_document(text, file);
  const LinePlace at{file, 0};
  const json& entries = list_in(document, "annotations", at);
  std::vector<SynTextImage> images;
  std::unordered_map<int64_t, size_t> places;
  for (const json& entry : entries) {
    const json& id = member(entry, "image_id", at);
    if (!id.is_number_integer()) throw_bad_label(at, "an image_id that is no whole number");
    const auto number = id.get<int64_t>();
    const auto [place, fresh] = places.emplace(number, images.size());
    if (fresh) images.push_back({number, {}});
    images[place->second].words.push_back(syntext_word(entry, at));
  }
  return images;
}

}  // namespace lockstep::ocr
