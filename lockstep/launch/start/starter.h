#pragma once
// `lockstep run -H a:2,b:2 PROGRAM`: starts an agent on each host and waits until all have ended.

#include <string>
#include <vector>

#include "lockstep/launch/job/run_options.h"

namespace lockstep::inline internal {

/// Starts an agent on each host of `options` (--host or --hostfile), on this one without --rsh.
/// Passes on the agents' output line by line, and the report of the first failure once and last.
/// Signals go to all agents. If an agent cannot be started, or this process dies, all end with
/// their standard input. Returns the exit code of the first failing agent, which is its job's.
/// `words`: after `lockstep run`. Errors: kInvalidArgument, kIo.
int start_on_hosts(const RunOptions& options, const std::vector<std::string>& words,
                   const Environment& environment);

}  // namespace lockstep::inline internal
