#pragma once
// Environment variables as a value, so that what is decided from them is a pure function.

#include <functional>
#include <map>
#include <string>

#include "lockstep/base/auth.h"

namespace lockstep {

using Environment = std::map<std::string, std::string, std::less<>>;

/// This process's variables. Of a name that occurs twice the first counts, as with getenv.
Environment this_environment();

/// What LOCKSTEP_TLS says: 1, or 0 (and unset) for kPlain. Errors: kInvalidArgument.
Wire wire_of(const Environment& environment);

}  // namespace lockstep
