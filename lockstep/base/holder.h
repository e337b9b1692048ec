#pragma once
// Whose something is that this process cannot have, for messages.

#include <sys/stat.h>

#include <string>

namespace lockstep {

/// "process 3819 (python3)"; the number alone where the name cannot be read.
std::string process_text(int pid);

/// Of who holds a lock (flock) of the file `status` is of: "process 3819 (python3)". Empty where
/// that is not known: another host, another PID namespace. Cost: one read of /proc/locks.
std::string lock_holder(const struct stat& status);

}  // namespace lockstep
