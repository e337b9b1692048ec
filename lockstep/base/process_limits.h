#pragma once
// The limits of processes and threads that may be started here.

#include <string>

#include "lockstep/error.h"

namespace lockstep::inline internal {

/// After EAGAIN of fork, clone or std::thread: the limit that is reached ("ulimit -u: 40, processes
/// and threads of this user: 40"; "pids.max of cgroup /a: 100, pids.current: 100"). If none is
/// reached, the values of all limits. Else "". `root`: the folder that contains /proc and /sys.
/// Does not change errno.
std::string process_shortage(int error_number, const std::string& root = "");

/// io_error() for a call that starts a process.
Error start_error(const std::string& doing);

}  // namespace lockstep::inline internal
