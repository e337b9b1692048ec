#pragma once
// Scripts that ask PyTorch for what ours is compared with.

#include <string>

#include "lockstep/base/env.h"

namespace lockstep::inline internal {

/// The command that runs a script of this project, with the Python whose PyTorch has the libtorch
/// of this build: bits are only equal within a version. `path` is below the sources' folder.
inline std::string torch_script(const std::string& path) {
  return env_or("LOCKSTEP_TEST_PYTHON", "/usr/bin/python3") + " -W ignore " +
         env_or("LOCKSTEP_SOURCE_DIR", ".") + "/" + path;
}

}  // namespace lockstep::inline internal
