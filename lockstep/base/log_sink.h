#pragma once
// The destination of log(), for a program that must never wait for the reader of its output.

#include <functional>
#include <string>

namespace lockstep::inline internal {

/// Takes a whole line, newline included. Any thread may call it, one at a time; it must neither
/// block nor log.
using LogSink = std::function<void(const std::string& line)>;

/// Sends lines to `sink` from now on; null: to standard error, as at the start. When it returns,
/// the previous sink is no longer in use.
void set_log_sink(LogSink sink);

}  // namespace lockstep::inline internal
