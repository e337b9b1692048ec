#pragma once

#include <functional>
#include <thread>

namespace lockstep {

/// Starts a thread in which every signal is blocked, so that handlers run in the program's own.
/// Errors: std::system_error, as std::thread.
std::thread start_quiet_thread(std::function<void()> body);

}  // namespace lockstep
