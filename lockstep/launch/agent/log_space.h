#pragma once
// Whether there is room for what ranks write to their log files without the agent.

#include <string>

#include "lockstep/launch/job/run_options.h"

namespace lockstep {

/// Pure: some local rank has a stream that goes to a file and not through the agent, which would
/// see a write that fails.
bool ranks_write_files(const RunOptions& options, int local_size);

/// Why a file in `folder` cannot grow: "No space left on device"; "": it can, or nobody can tell.
/// Cost: a page is written to a file without a name.
std::string why_no_room(const std::string& folder);

}  // namespace lockstep
