#include "lockstep/launch/job/json_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

Error bad_member(const char* name, const std::string& what) {
  return {ErrorCode::kCorrupt,
          fmt::format("message of an agent or its starter: '{}' {}", name, what)};
}

bool is_text(const nlohmann::json& value, size_t max_bytes) {
  return value.is_string() && value.get_ref<const std::string&>().size() <= max_bytes;
}

/// The values of a list or an object.
bool all_texts(const nlohmann::json& values, size_t max_bytes) {
  return std::all_of(values.begin(), values.end(),
                     [&](const auto& each) { return is_text(each, max_bytes); });
}

}  // namespace

MemberReader::MemberReader(std::string_view text, size_t max_bytes, const char* what) {
  if (text.size() > max_bytes) {
    throw Error(ErrorCode::kCorrupt, fmt::format("{} of {} bytes; at most {} are allowed", what,
                                                 text.size(), max_bytes));
  }
  json_ = nlohmann::json::parse(text, nullptr, false);
  if (json_.is_object()) return;
  throw Error(ErrorCode::kCorrupt, fmt::format("{} is not a JSON object", what));
}

const nlohmann::json& MemberReader::member(const char* name) const {
  const auto found = json_.find(name);
  if (found == json_.end()) throw bad_member(name, "is missing");
  return *found;
}

int64_t MemberReader::whole(const char* name, int64_t lo, int64_t hi) const {
  const auto& value = member(name);
  // A number above the signed range would be read as a negative one.
  const bool whole = value.is_number_integer() &&
                     (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT64_MAX});
  if (whole && value.get<int64_t>() >= lo && value.get<int64_t>() <= hi) return value;
  throw bad_member(name, fmt::format("is not a whole number from {} to {}", lo, hi));
}

void MemberReader::text(const char* name, std::string& value, size_t max_bytes) const {
  const auto& given = member(name);
  if (!is_text(given, max_bytes))
    throw bad_member(name, fmt::format("is not a text of at most {} bytes", max_bytes));
  value = given;
}

void MemberReader::flag(const char* name, bool& value) const {
  const auto& given = member(name);
  if (!given.is_boolean()) throw bad_member(name, "is neither true nor false");
  value = given;
}

void MemberReader::real(const char* name, double& value) const {
  const auto& given = member(name);
  if (!given.is_number() || !std::isfinite(given.get<double>()))
    throw bad_member(name, "is not a number");
  value = given;
}

void MemberReader::texts(const char* name, std::vector<std::string>& values,
                         size_t max_bytes) const {
  const auto& list = member(name);
  if (!list.is_array() || !all_texts(list, max_bytes))
    throw bad_member(name, "is not a list of texts");
  values = list.get<std::vector<std::string>>();
}

void MemberReader::texts(const char* name, std::map<std::string, std::string>& values,
                         size_t max_bytes) const {
  const auto& object = member(name);
  if (!object.is_object() || !all_texts(object, max_bytes))
    throw bad_member(name, "is not an object of texts");
  values = object.get<std::map<std::string, std::string>>();
}

nlohmann::json MemberReader::part(const char* name) const {
  const auto& value = member(name);
  if (!value.is_object()) throw bad_member(name, "is not an object");
  return value;
}

std::vector<MemberReader> MemberReader::parts(const char* name, size_t most) const {
  const auto& list = member(name);
  const bool objects =
      list.is_array() && list.size() <= most &&
      std::all_of(list.begin(), list.end(), [](const auto& each) { return each.is_object(); });
  if (!objects) throw bad_member(name, fmt::format("is not a list of up to {} objects", most));
  std::vector<MemberReader> readers;
  for (const auto& each : list) readers.emplace_back(each);
  return readers;
}

std::string to_text(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Each byte that is not UTF-8 is replaced by three.
std::string cut(const std::string& text, size_t max_bytes) {
  if (3 * text.size() <= max_bytes) return text;
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c > 0; });
  return text.substr(0, plain ? max_bytes : max_bytes / 3);
}

}  // namespace lockstep::inline internal
