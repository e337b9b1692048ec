#pragma once

#include <filesystem>

#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"

namespace lockstep {

/// Takes turns with other processes that fill `folder`, until what it returns is destroyed. The
/// lock is on the folder itself, so that it leaves no file behind and ends with its holder. A line
/// says when it waits. Errors: kTimeout, kIo.
UniqueFd take_turn(const std::filesystem::path& folder, Deadline deadline);

}  // namespace lockstep
