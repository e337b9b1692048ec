#pragma once
// Where another process is: the call stack of its main thread, read from outside.
//
// Nothing runs in that process for it, so it may be stopped, in a system call or in an endless
// loop. libdw (elfutils) walks the stack by the tables that every program has for exceptions; it is
// loaded when first needed and no program links it. Code that a program makes as it runs (oneDNN's
// kernels) has no such tables: see generated_code.h.

#include <chrono>
#include <string>
#include <vector>

namespace lockstep {

struct Stack {
  std::vector<std::string> functions;  ///< Innermost first; empty where it cannot be told.
  std::string why_not;                 ///< Then.
};

/// Stops the process for a moment (ptrace) and lets it go on; one that was stopped stays so. Takes
/// some 30 ms for a program that links libtorch, at most `limit`. One caller at a time may
/// look at a process. Where the kernel restricts ptrace (Yama), only the user's processes that
/// descend from the one that started it may, as ranks of one job do (see admit_siblings()), and
/// root.
Stack stack_of(int pid, std::chrono::milliseconds limit);

/// Of this process's main thread, for another of its threads: a signal (SIGRTMAX - 3, unless the
/// program has a handler for it) has the main thread write down where it is. System calls that no
/// signal may interrupt unseen end with EINTR.
Stack own_stack(std::chrono::milliseconds limit);

/// Lets the processes that this one's parent has started read its stack, where Yama would not.
void admit_siblings();

/// "clock_nanosleep < std::this_thread::sleep_for < ... < main": the innermost and the outermost
/// functions, without what comes before main; else "not to be had (WHY)".
std::string to_string(const Stack& stack);

}  // namespace lockstep
