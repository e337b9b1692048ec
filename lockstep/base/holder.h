#pragma once
// Names the owner of a resource that this process cannot get, for messages.

#include <sys/stat.h>

#include <string>

namespace lockstep::inline internal {

/// "process 3819 (python3)"; the number alone if the name is not readable.
std::string process_text(int pid);

/// The process that listens on a TCP port of this host, or else has a connection there, as above;
/// "user 33" if its processes are not visible. Empty if it is unknown: another namespace, a port
/// that is only bound. Cost: reads all of /proc/*/fd of this user.
std::string port_holder(int port);

/// "already in use, by process 3819 (python3)"; without the name if it is unknown.
std::string taken_by_text(int port);

/// The process that holds a lock (flock) on the file of `status`: "process 3819 (python3)". Empty
/// if it is unknown: another host, another PID namespace. Cost: one read of /proc/locks.
std::string lock_holder(const struct stat& status);

}  // namespace lockstep::inline internal
