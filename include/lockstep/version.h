#pragma once
// The version of this library, and the properties that all ranks must have in common.
//
// Use:
//   std::printf("Lockstep %s\n", lockstep::version().c_str());
//   std::printf("equal on every rank: %s\n", lockstep::build_id().c_str());
//
// Threads: any. Cost: none after the first call, which makes the text. Errors: none.

#include <string>

namespace lockstep {

/// "0.1.0".
const std::string& version();

/// Properties that must be equal on every rank: version, wire protocol number, byte order, pointer
/// size.
const std::string& build_id();

}  // namespace lockstep
