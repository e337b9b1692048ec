#pragma once
// The version of this library, and what must be equal in the programs of all ranks.
//
// Use:
//   std::printf("Lockstep %s\n", lockstep::version().c_str());
//   std::printf("equal on every rank: %s\n", lockstep::build_id().c_str());

#include <string>

namespace lockstep {

/// "0.1.0".
const std::string& version();

/// Properties that must be equal on every rank: version, wire protocol number, byte order, pointer
/// size.
const std::string& build_id();

}  // namespace lockstep
