#pragma once
// The JSON text of a rank table, for the sources of this folder.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lockstep::rank_table {

/// `text` as JSON, limited in bytes, depth and names per object. Refuses an object with a repeated
/// name. Null and one line in `problem` if it is invalid.
nlohmann::ordered_json parse_document(std::string_view text, std::string* problem);

/// In the format of Python's json.dump(indent=4). Errors: kInvalidArgument: a text is not UTF-8.
std::string dump_document(const nlohmann::ordered_json& document);

}  // namespace lockstep::rank_table
