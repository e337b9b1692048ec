#pragma once
// The ranks of this user that run on this host, by their flight recorders, whoever started them.

#include <string>
#include <vector>

#include "lockstep/launch/jobs/rank_process.h"

namespace lockstep::app {

/// Is what a link in /proc/PID/fd points to a flight recorder?
bool is_recorder(std::string target);

/// Each rank that has made a process group, of processes that this one can name by number: those of
/// other PID namespaces are left out. What ends meanwhile is left out as well.
/// Cost: a stat() for each process of the host; for each of this user's 10 us, and 4 us for each of
/// its open files. Measured: 0.25 s with 4,000 such processes of 13 files each.
/// Errors: kUnavailable (/proc is not mounted).
std::vector<RankProcess> ranks_here();

}  // namespace lockstep::app
