#pragma once
// Environment variables as a value, so that decisions based on them are pure functions.

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "lockstep/base/auth.h"

namespace lockstep::inline internal {

using Environment = std::map<std::string, std::string, std::less<>>;

/// This process's variables. Of repeated names the first counts, as with getenv.
Environment this_environment();

/// The value of a variable; "" if it is not set.
std::string value_in(const Environment& environment, std::string_view name);

/// The wire by LOCKSTEP_TLS: 1 for kTls, 0 or unset for kPlain. Errors: kInvalidArgument.
Wire wire_of(const Environment& environment);

/// Whether a launcher has started this process's job before: after a failure, or because hosts came
/// or left (LOCKSTEP_GENERATION, TORCHELASTIC_RESTART_COUNT). The same call worked then, so a fault
/// now is not the user's. False for unreadable variables.
bool is_later_generation(const Environment& environment);

}  // namespace lockstep::inline internal
