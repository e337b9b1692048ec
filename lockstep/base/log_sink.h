#pragma once
// Where log() writes, for a program that must never wait for whoever reads its output.

#include <functional>
#include <string>

namespace lockstep {

/// Takes a whole line, newline included. Any thread may call it, one at a time; it must neither
/// block nor log.
using LogSink = std::function<void(const std::string& line)>;

/// From now on lines go there; null: to standard error, as at the beginning. When it returns, the
/// sink before is not in use any more.
void set_log_sink(LogSink sink);

}  // namespace lockstep
