#pragma once
// Access to members of an untrusted JSON document, each with its own error. Private to the layer.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/ocr/convert/label_json.h"
#include "lockstep/ocr/convert/lines.h"
#include "lockstep/ocr/convert/parse_set.h"

namespace lockstep::ocr {

// All throw kCorrupt, naming `at`.

/// Parses an object of at most 32 levels; deeper lists are skipped.
nlohmann::json parse_document(const std::string& text, const std::string& file);
/// Also returns the names in the member `section`, an object, in the order of the file.
nlohmann::json parse_document(const std::string& text, const std::string& file,
                              const std::string& section, std::vector<std::string>& names);

const nlohmann::json& member(const nlohmann::json& object, const std::string& name,
                             const LinePlace& at);
/// A member that is a list.
const nlohmann::json& list_in(const nlohmann::json& object, const std::string& name,
                              const LinePlace& at);
std::string text_in(const nlohmann::json& object, const std::string& name, const LinePlace& at);

std::vector<double> numbers_of(const nlohmann::json& list, const LinePlace& at);
/// [x, y, x, y, ..] without fractions.
std::vector<LabelPoint> flat_points(const nlohmann::json& list, const LinePlace& at);
/// [[x, y], ..]. `whole`: all are integers in the file.
std::vector<LabelPoint> nested_points(const nlohmann::json& list, const LinePlace& at, bool& whole);
/// Truth as in Python.
bool is_true(const nlohmann::json& value);

/// Whether the word's polygon has three corners or more; else adds a note that it is skipped.
bool has_area(const LabelWord& word, const std::string& where, LabelNotes& notes);

}  // namespace lockstep::ocr
