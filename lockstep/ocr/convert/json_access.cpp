#include "lockstep/ocr/convert/json_access.h"

#include <fmt/format.h>

#include <cmath>

namespace lockstep::ocr {
namespace {

using nlohmann::json;

double number_of(const json& value, const LinePlace& at) {
  if (value.is_string()) return static_cast<double>(whole_number(value.get<std::string>(), at));
  if (!value.is_number()) throw_bad_label(at, "a coordinate that is no number");
  return value.get<double>();
}

// The library's own parser and destructor are recursive.
constexpr int kMaxDepth = 32;

json checked(json document, const std::string& file) {
  if (document.is_discarded() || !document.is_object()) {
    throw_bad_label({file, 0}, "no JSON object");
  }
  return document;
}

}  // namespace

json parse_document(const std::string& text, const std::string& file) {
  return checked(
      json::parse(
          text, [](int depth, json::parse_event_t, json&) { return depth < kMaxDepth; }, false),
      file);
}

json parse_document(const std::string& text, const std::string& file, const std::string& section,
                    std::vector<std::string>& names) {
  bool is_inside = false;
  return checked(json::parse(
                     text,
                     [&](int depth, json::parse_event_t event, json& value) {
                       if (event == json::parse_event_t::key && value.is_string()) {
                         const auto& key = value.get_ref<const std::string&>();
                         if (depth == 1) is_inside = key == section;
                         if (depth == 2 && is_inside) names.push_back(key);
                       }
                       return depth < kMaxDepth;
                     },
                     false),
                 file);
}

const json& member(const json& object, const std::string& name, const LinePlace& at) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) {
    throw_bad_label(at, fmt::format("an entry without '{}'", name));
  }
  return *found;
}

const json& list_in(const json& object, const std::string& name, const LinePlace& at) {
  const json& list = member(object, name, at);
  if (!list.is_array()) throw_bad_label(at, fmt::format("'{}' is no list", name));
  return list;
}

std::string text_in(const json& object, const std::string& name, const LinePlace& at) {
  const json& value = member(object, name, at);
  if (!value.is_string()) throw_bad_label(at, fmt::format("a '{}' that is no text", name));
  return value.get<std::string>();
}

std::vector<double> numbers_of(const json& list, const LinePlace& at) {
  if (!list.is_array()) throw_bad_label(at, "no list where numbers are expected");
  std::vector<double> numbers;
  for (const json& value : list) numbers.push_back(number_of(value, at));
  return numbers;
}

std::vector<LabelPoint> flat_points(const json& list, const LinePlace& at) {
  const auto numbers = numbers_of(list, at);
  if (numbers.size() % 2 != 0) throw_bad_label(at, "an odd number of coordinates");
  std::vector<LabelPoint> points;
  for (size_t i = 0; i < numbers.size(); i += 2) {
    points.push_back({std::trunc(numbers[i]), std::trunc(numbers[i + 1])});
  }
  return points;
}

std::vector<LabelPoint> nested_points(const json& list, const LinePlace& at, bool& whole) {
  if (!list.is_array()) throw_bad_label(at, "no list where points are expected");
  constexpr double kMost = 1e9;
  std::vector<LabelPoint> points;
  whole = true;
  for (const json& point : list) {
    const auto pair = numbers_of(point, at);
    if (pair.size() != 2) throw_bad_label(at, "a point of other than two numbers");
    if (!(std::abs(pair[0]) <= kMost && std::abs(pair[1]) <= kMost)) {
      throw_bad_label(at, "a coordinate beyond 1e9");
    }
    points.push_back({pair[0], pair[1]});
    whole = whole && point[0].is_number_integer() && point[1].is_number_integer();
  }
  return points;
}

bool is_true(const json& value) {
  return value.is_boolean()  ? value.get<bool>()
         : value.is_number() ? value.get<double>() != 0
                             : !value.empty();
}

bool has_area(const LabelWord& word, const std::string& where, LabelNotes& notes) {
  if (word.points.size() >= 3) return true;
  notes.push_back(fmt::format("{}: skipping the invalid polygon of '{}'", where, word.text));
  return false;
}

}  // namespace lockstep::ocr
