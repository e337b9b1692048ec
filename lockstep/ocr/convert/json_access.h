#pragma once
// Members of a JSON document from outside, each with an error of its own. Private to the layer.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/ocr/convert/label_json.h"
#include "lockstep/ocr/convert/lines.h"
#include "lockstep/ocr/convert/parse_set.h"

namespace lockstep::ocr {

// All throw kCorrupt, naming `at`.

/// An object, of at most 32 levels: deeper lists are left out.
nlohmann::json parse_document(const std::string& text, const std::string& file);
/// With the names in the member `section`, which is an object, in the order of the file.
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
/// Python's truth.
bool is_true(const nlohmann::json& value);

/// Whether the word's polygon has three corners or more; else a note says that it is left out.
bool has_area(const LabelWord& word, const std::string& where, LabelNotes& notes);

}  // namespace lockstep::ocr
