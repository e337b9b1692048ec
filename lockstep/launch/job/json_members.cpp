#include "lockstep/launch/job/json_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"

namespace lockstep {
namespace {

Error bad_member(const char* name, const std::string& what) {
  return {ErrorCode::kCorrupt, fmt::format("message of an agent: '{}' {}", name, what)};
}

const nlohmann::json& member(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) throw bad_member(name, "is missing");
  return *found;
}

}  // namespace

nlohmann::json parse_object(std::string_view text, size_t max_bytes, const char* what) {
  if (text.size() > max_bytes) {
    throw Error(ErrorCode::kCorrupt, fmt::format("{} of {} bytes; at most {} are allowed", what,
                                                 text.size(), max_bytes));
  }
  auto object = nlohmann::json::parse(text, nullptr, false);
  if (object.is_object()) return object;
  throw Error(ErrorCode::kCorrupt, fmt::format("{} is not a JSON object", what));
}

int64_t int_member(const nlohmann::json& object, const char* name, int64_t lo, int64_t hi) {
  const auto& value = member(object, name);
  // A number above the signed range would be read as a negative one.
  const bool whole = value.is_number_integer() &&
                     (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT64_MAX});
  if (whole && value.get<int64_t>() >= lo && value.get<int64_t>() <= hi) return value;
  throw bad_member(name, fmt::format("is not a whole number from {} to {}", lo, hi));
}

std::string text_member(const nlohmann::json& object, const char* name, size_t max_bytes) {
  const auto& value = member(object, name);
  if (value.is_string() && value.get_ref<const std::string&>().size() <= max_bytes) return value;
  throw bad_member(name, fmt::format("is not a text of at most {} bytes", max_bytes));
}

double number_member(const nlohmann::json& object, const char* name) {
  const auto& value = member(object, name);
  if (value.is_number() && std::isfinite(value.get<double>())) return value;
  throw bad_member(name, "is not a number");
}

std::vector<std::string> texts_member(const nlohmann::json& object, const char* name,
                                      size_t max_bytes) {
  const auto& list = member(object, name);
  const bool texts =
      list.is_array() && std::all_of(list.begin(), list.end(), [&](const auto& each) {
        return each.is_string() && each.template get_ref<const std::string&>().size() <= max_bytes;
      });
  if (!texts) throw bad_member(name, "is not a list of texts");
  return list;
}

std::string to_text(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A byte that is no UTF-8 is replaced by three.
std::string cut(const std::string& text, size_t max_bytes) {
  if (3 * text.size() <= max_bytes) return text;
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c > 0; });
  return text.substr(0, plain ? max_bytes : max_bytes / 3);
}

}  // namespace lockstep
