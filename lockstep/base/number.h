#pragma once
// Texts that are numbers.

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace lockstep::inline internal {

/// The number that the whole text is, as std::from_chars() reads it: without blanks, and a '-' only
/// before signed ones. `base`: of whole numbers, if it is not 10. Nothing: it is none, or outside
/// of T's range.
template <class T>
std::optional<T> as_number(std::string_view text, auto... base) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value, base...);
  return failure == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

/// An empty text has none.
inline bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace lockstep::inline internal
