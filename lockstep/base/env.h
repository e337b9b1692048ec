#pragma once
// Reads the environment; errors name the variable.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::inline internal {

/// The variable's text; nothing if it is unset or empty (launchers treat the two alike).
std::optional<std::string> env(const char* name);
std::string env_or(const char* name, std::string_view fallback);

/// `text` as a whole number in [lo, hi]. `what` names it in the error (kInvalidArgument).
int64_t parse_int(std::string_view text, int64_t lo, int64_t hi, std::string_view what);

/// The same for any finite number.
double parse_real(std::string_view text, double lo, double hi, std::string_view what);

/// "1" is yes and "0" is no. The error (kInvalidArgument) names `variable`.
bool parse_yes(std::string_view text, std::string_view variable);

}  // namespace lockstep::inline internal
