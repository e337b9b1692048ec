#pragma once
// Environment variables as a value, so that what is decided from them is a pure function.

#include <functional>
#include <map>
#include <string>

namespace lockstep {

using Environment = std::map<std::string, std::string, std::less<>>;

/// This process's variables. Of a name that occurs twice the first counts, as with getenv.
Environment this_environment();

}  // namespace lockstep
