#pragma once

#include <string>

namespace lockstep {

/// Tells a pipe from all others of this host while it is open: "DEVICE:INODE", the same for all
/// who have an end of it. Empty for what is no pipe.
std::string pipe_name(int fd);

}  // namespace lockstep
