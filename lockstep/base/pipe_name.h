#pragma once

#include <string>

namespace lockstep {

/// "DEVICE:INODE" of a pipe: unique on this host while the pipe is open, and the same for both
/// ends. Empty if it is not a pipe.
std::string pipe_name(int fd);

}  // namespace lockstep
