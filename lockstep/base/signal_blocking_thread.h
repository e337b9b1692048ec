#pragma once

#include <functional>
#include <thread>

namespace lockstep::inline internal {

/// Starts a thread in which signals are blocked, so that handlers run in the program's own threads.
/// Signals of a thread's own faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT) are
/// not blocked: a program's crash handler runs for this thread too. Errors: std::system_error, as
/// std::thread.
std::thread start_thread_with_signals_blocked(std::function<void()> body);

}  // namespace lockstep::inline internal
