#pragma once
// Agents of this host, held by pidfds, so that a reused pid cannot be mistaken for one.

#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/jobs/job_entry.h"
#include "lockstep/launch/jobs/registry.h"

namespace lockstep {

struct HeldAgent {
  JobEntry job;
  UniqueFd pidfd;
  /// Waits at most `wait_ms` for its end.
  bool ended(int wait_ms) const;
};

/// This user's agents on this host, the oldest first, with their workers' reports.
std::vector<JobEntry> running_jobs(WithoutProc without_proc = WithoutProc::kNone);

/// This user's past agents with files, without those of `running`; the newest first.
std::vector<JobEntry> jobs_that_are_over(const std::vector<JobEntry>& running);

/// The agents of `jobs` that are still alive.
std::vector<HeldAgent> hold_agents(std::vector<JobEntry> jobs);

}  // namespace lockstep
