#pragma once

#include <string>

namespace lockstep {

/// Of a linker's symbol: "lockstep::Reducer::finish_pass", without arguments of function and
/// templates, unnamed namespaces and a symbol's version.
std::string function_name(const std::string& symbol);

}  // namespace lockstep
