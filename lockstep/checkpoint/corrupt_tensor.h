#pragma once
// Private to the layer.

#include <fmt/format.h>

#include <string>

#include "lockstep/error.h"

namespace lockstep {

/// Throws kCorrupt: "FILE: tensor 'NAME' WHAT".
[[noreturn]] inline void throw_corrupt_tensor(const std::string& file, const std::string& name,
                                              const std::string& what) {
  throw Error(ErrorCode::kCorrupt, fmt::format("{}: tensor '{}' {}", file, name, what));
}

}  // namespace lockstep
