#pragma once
// Environment variables as a value, so that what is decided from them is a pure function.

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "lockstep/base/auth.h"

namespace lockstep {

using Environment = std::map<std::string, std::string, std::less<>>;

/// This process's variables. Of a name that occurs twice the first counts, as with getenv.
Environment this_environment();

/// The value of a variable; "" where it is not set.
std::string value_in(const Environment& environment, std::string_view name);

/// What LOCKSTEP_TLS says: 1, or 0 (and unset) for kPlain. Errors: kInvalidArgument.
Wire wire_of(const Environment& environment);

/// Whether a launcher has started this process's job before: after a failure, or because nodes came
/// or left (LOCKSTEP_GENERATION, TORCHELASTIC_RESTART_COUNT). The same call was good once then, so
/// what is wrong now is not the user's mistake. Unreadable variables say no.
bool is_later_generation(const Environment& environment);

}  // namespace lockstep
