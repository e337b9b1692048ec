#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lockstep::inline internal {

/// The only argument of an agent that a starter (starter.h) has started.
constexpr char kStartedWord[] = "--from_stdin";

/// Reads from standard input what to run, calls `run` with those words, and returns its result. The
/// end of standard input sends SIGTERM to this process; a signal named by the starter is raised
/// too. Call it before threads start. Errors: kCorrupt, kIo (the folder does not exist).
int run_from_starter(const std::function<int(const std::vector<std::string>& words)>& run);

}  // namespace lockstep::inline internal
