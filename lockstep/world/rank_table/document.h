#pragma once
// The JSON text of a rank table, for the sources of this folder.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lockstep::rank_table {

/// `text` as JSON. Bounded in bytes, depth and names an object; an object with a name twice is
/// refused. Null and one line in `problem` when it is none.
nlohmann::ordered_json parse_document(std::string_view text, std::string* problem);

/// As Python's json.dump(indent=4) writes it. Errors: kInvalidArgument: a text is not UTF-8.
std::string dump_document(const nlohmann::ordered_json& document);

}  // namespace lockstep::rank_table
