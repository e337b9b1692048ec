#pragma once
// Whose something is that this process cannot have, for messages.

#include <sys/stat.h>

#include <string>

namespace lockstep {

/// "process 3819 (python3)"; the number alone where the name cannot be read.
std::string process_text(int pid);

/// Of who listens on a TCP port of this host, or else has it for a connection: as above; "user 33",
/// where its processes are not ours to see. Empty where that is not known: another namespace, a
/// port that is only bound. Cost: reads all of /proc/*/fd of this user.
std::string port_holder(int port);

/// "already in use, by process 3819 (python3)"; without the name where it is not known.
std::string taken_by_text(int port);

/// Of who holds a lock (flock) of the file `status` is of: "process 3819 (python3)". Empty where
/// that is not known: another host, another PID namespace. Cost: one read of /proc/locks.
std::string lock_holder(const struct stat& status);

}  // namespace lockstep
