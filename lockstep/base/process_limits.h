#pragma once
// How many processes and threads may be started here.

#include <string>

#include "lockstep/error.h"

namespace lockstep {

/// After EAGAIN of fork, clone or std::thread: which limit is reached ("ulimit -u: 40,
/// processes and threads of this user: 40"; "pids.max of cgroup /a: 100, pids.current: 100"); where
/// none is, the values of those that there are. Else "". `root`: where /proc and /sys are. Changes
/// no errno.
std::string process_shortage(int error_number, const std::string& root = "");

/// io_error() of a call that starts a process.
Error start_error(const std::string& doing);

}  // namespace lockstep
