#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "lockstep/ocr/convert/lines.h"
#include "lockstep/ocr/convert/parse_set.h"

namespace lockstep::ocr {
namespace {

using nlohmann::json;

json parse_document(const std::string& text, const std::string& file) {
  // Depth is bounded by hand: the library's own destructor and parser recurse.
  json document = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth < 32; }, false);
  if (document.is_discarded() || !document.is_object())
    throw_bad_label({file, 0}, "no JSON object");
  return document;
}

const json& member(const json& object, const char* name, const LinePlace& at) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) {
    throw_bad_label(at, fmt::format("an entry without '{}'", name));
  }
  return *found;
}

double number_of(const json& value, const LinePlace& at) {
  if (value.is_string()) return static_cast<double>(whole_number(value.get<std::string>(), at));
  if (!value.is_number()) throw_bad_label(at, "a coordinate that is no number");
  return value.get<double>();
}

std::vector<double> numbers_of(const json& list, const LinePlace& at) {
  if (!list.is_array()) throw_bad_label(at, "no list where numbers are expected");
  std::vector<double> numbers;
  for (const json& value : list) numbers.push_back(number_of(value, at));
  return numbers;
}

std::string text_of(const json& value, const LinePlace& at) {
  if (!value.is_string()) throw_bad_label(at, "a transcription that is no text");
  return value.get<std::string>();
}

/// Python's truth.
bool is_true(const json& value) {
  return value.is_boolean()  ? value.get<bool>()
         : value.is_number() ? value.get<double>() != 0
                             : !value.empty();
}

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
  const json& lines = member(document, "lines", at);
  if (!lines.is_array()) throw_bad_label(at, "'lines' is no list");
  std::vector<LabelWord> words;
  for (const json& line : lines) {
    LabelWord word;
    const auto numbers = numbers_of(member(line, "points", at), at);
    if (numbers.size() % 2 != 0) throw_bad_label(at, "an odd number of coordinates");
    for (size_t i = 0; i < numbers.size(); i += 2) {
      word.points.push_back({std::trunc(numbers[i]), std::trunc(numbers[i + 1])});
    }
    word.text = is_true(member(line, "ignore", at))
                    ? "###"
                    : text_of(member(line, "transcription", at), at);
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
  const json& entries = member(document, "annotations", at);
  if (!entries.is_array()) throw_bad_label(at, "'annotations' is no list");
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
