#pragma once

#include <functional>
#include <thread>

namespace lockstep {

/// Starts a thread in which signals are blocked, so that handlers run in the program's own threads.
/// Those of a thread's own faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT) are
/// not: a program's handler of crashes is called for this thread too.
/// Errors: std::system_error, as std::thread.
std::thread start_thread_with_signals_blocked(std::function<void()> body);

}  // namespace lockstep
