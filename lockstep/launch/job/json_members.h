#pragma once
// Members of JSON objects that came from elsewhere: read whole and within bounds, or not at all.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A host's name or address, a role, the name of a run: no longer than this.
inline constexpr size_t kMaxName = 255;

/// An object of at most `max_bytes`. `what` names it in errors. Errors (all of these): kCorrupt.
nlohmann::json parse_object(std::string_view text, size_t max_bytes, const char* what);
/// A whole number in [lo, hi].
int64_t int_member(const nlohmann::json& object, const char* name, int64_t lo, int64_t hi);
/// Text of at most `max_bytes`.
std::string text_member(const nlohmann::json& object, const char* name, size_t max_bytes);

inline int small_member(const nlohmann::json& object, const char* name, int lo, int hi) {
  return static_cast<int>(int_member(object, name, lo, hi));
}

/// A number that is not infinite.
double number_member(const nlohmann::json& object, const char* name);
/// A list of texts of at most `max_bytes` each.
std::vector<std::string> texts_member(const nlohmann::json& object, const char* name,
                                      size_t max_bytes);

/// `object` as text; bytes that are no UTF-8 are replaced.
std::string to_text(const nlohmann::json& object);
/// The beginning of `text`, at most `max_bytes` of it, for a member of limited length.
std::string cut(const std::string& text, size_t max_bytes);

}  // namespace lockstep
