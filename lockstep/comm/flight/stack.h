#pragma once
// The call stack of another process's main thread, read from outside.
//
// That process runs nothing for it, so it may be stopped, in a system call or in an endless loop.
// The library libdw (elfutils) walks the stack by the exception tables that every program has. It
// is loaded on first use and no program links it. Code generated at run time (oneDNN's kernels) has
// no such tables: see generated_code.h.

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::inline internal {

struct Stack {
  std::vector<std::string> functions;  ///< Innermost first; empty if unknown.
  std::string why_not;                 ///< The reason, if empty.
};

/// Stops the process for a moment (ptrace) and resumes it; a stopped process stays stopped. Takes
/// some 30 ms for a program that links libtorch, at most `limit`. One caller at a time may look at
/// a process. If the kernel restricts ptrace (Yama), it works for root, and for the user's
/// processes that descend from this process's parent. Ranks of one job do (see admit_siblings()).
Stack stack_of(int pid, std::chrono::milliseconds limit);

/// The stack of this process's main thread, for another of its threads. A signal (SIGRTMAX - 3,
/// unless the program has a handler for it) makes the main thread write its stack. System calls
/// that a signal can interrupt visibly end with EINTR.
Stack own_stack(std::chrono::milliseconds limit);

/// Lets processes started by this one's parent read its stack, which Yama would forbid.
void admit_siblings();

/// "clock_nanosleep < std::this_thread::sleep_for < ... < main": the innermost and the outermost
/// functions, without frames before main; else "not to be had (WHY)".
std::string to_string(const Stack& stack);

}  // namespace lockstep::inline internal
