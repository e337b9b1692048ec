#pragma once
// `lockstep run -H a:2,b:2 PROGRAM`: starts an agent on each host and stays until all have ended.

#include <string>
#include <vector>

#include "lockstep/launch/job/run_options.h"

namespace lockstep {

/// The hosts of `options` (--host or --hostfile) with an agent each, this one without --rsh. What
/// the agents print is passed on line by line, the report of the first failure once and last.
/// Signals go to all agents; when one agent cannot be started, or this process dies, all end,
/// because their standard input does. Returns the exit code: the first failing agent's, which is
/// its job's. `words`: after `lockstep run`. Errors: kInvalidArgument, kIo.
int start_on_hosts(const RunOptions& options, const std::vector<std::string>& words,
                   const Environment& environment);

}  // namespace lockstep
