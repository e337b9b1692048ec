#pragma once
// Simulates an older kernel, or a container's filter, by seccomp.

#include <sys/syscall.h>

#include <functional>
#include <vector>

namespace lockstep::testing {

/// System calls that Linux 4.18 lacks and the filters of older containers refuse.
inline const std::vector<int> kCallsSinceLinux5 = {SYS_pidfd_open, SYS_pidfd_send_signal,
                                                   SYS_close_range};

/// From here on the kernel refuses `calls` with `error` to this thread, and to all threads and
/// processes that it starts. Nothing undoes this. Errors: std::runtime_error.
void refuse_calls(const std::vector<int>& calls, int error);

/// Runs `body` in a thread to which refuse_calls() applies; 0: to which it does not. Throws what
/// `body` throws.
void run_refused(const std::vector<int>& calls, int error, const std::function<void()>& body);

}  // namespace lockstep::testing
