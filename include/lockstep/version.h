#pragma once

#include <string>

namespace lockstep {

/// "0.1.0".
const std::string& version();

/// Properties that must be equal on every rank: version, wire protocol number, byte order, pointer
/// size.
const std::string& build_id();

}  // namespace lockstep
