#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lockstep {

/// The only word of an agent that a starter (starter.h) has started.
constexpr char kStartedWord[] = "--from_stdin";

/// Hears from standard input what to run, calls `run` with those words, and returns what it
/// returns. The end of standard input is a SIGTERM to this process, signals that the starter names
/// likewise. Call it before threads start. Errors: kCorrupt, kIo (the folder is not there).
int run_from_starter(const std::function<int(const std::vector<std::string>& words)>& run);

}  // namespace lockstep
