#pragma once
// The ranks of this user on this host, found by their flight recorders, under any launcher.

#include <string>
#include <vector>

#include "lockstep/launch/jobs/rank_process.h"

namespace lockstep::app {

/// Whether the target of a link in /proc/PID/fd is a flight recorder.
bool is_recorder(std::string target);

/// Each rank that has made a process group, with the steps that it reports. Ranks in containers are
/// there, too, unless these lack a /proc of their own. Processes that end meanwhile are left out.
///
/// Cost: a stat() for each process of the host. Each process of this user costs 10 us, and each of
/// its open files 4 us. Measured: 0.25 s with 4,000 such processes of 13 files each.
///
/// Errors: kUnavailable (/proc is not mounted).
std::vector<RankProcess> ranks_here();

}  // namespace lockstep::app
