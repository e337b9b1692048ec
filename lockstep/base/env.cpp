#include "lockstep/base/env.h"

#include <fmt/format.h>

#include <cstdlib>

#include "lockstep/base/number.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

std::optional<std::string> env(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string env_or(const char* name, std::string_view fallback) {
  return env(name).value_or(std::string(fallback));
}

int64_t parse_int(std::string_view text, int64_t lo, int64_t hi, std::string_view what) {
  const auto value = as_number<int64_t>(text);
  if (!value || *value < lo || *value > hi) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: '{}' is not a whole number from {} to {}", what, text, lo, hi));
  }
  return *value;
}

double parse_real(std::string_view text, double lo, double hi, std::string_view what) {
  // std::from_chars would make the launcher load libm, which costs each start.
  const std::string whole(text);
  char* end = nullptr;
  const double value = std::strtod(whole.c_str(), &end);
  const bool decimal = !whole.empty() && whole.find_first_not_of("+-.eE0123456789") == whole.npos;
  if (!decimal || *end != '\0' || !(value >= lo && value <= hi)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: '{}' is not a number from {} to {}", what, text, lo, hi));
  }
  return value;
}

bool parse_yes(std::string_view text, std::string_view variable) {
  if (text == "1" || text == "0") return text == "1";
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("environment variable {}: '{}' is not 0 or 1", variable, text));
}

}  // namespace lockstep::inline internal
