#pragma once
// `lockstep ps`, `lockstep stop`, `lockstep logs`: this user's jobs on this host. Each takes the
// words after its name, and a function that finds ranks of other launchers. It returns the exit
// code. Errors: kInvalidArgument, kNotFound.

#include <string>
#include <vector>

#include "lockstep/launch/jobs/job_entry.h"
#include "lockstep/launch/jobs/other_jobs.h"

namespace lockstep::inline internal {

int ps_command(const std::vector<std::string>& words, const FindRanks& find);
int stop_command(const std::vector<std::string>& words, const FindRanks& find);
int logs_command(const std::vector<std::string>& words, const FindRanks& find);

/// The only one of `words`, which names a job, or "". Errors: kInvalidArgument (two of them).
std::string only_name(const std::vector<std::string>& words, const std::string& verb);

/// The jobs that `lockstep stop NAME` or `--all` ends: never one that was not named, even if it is
/// the only one. Pure; `now` and `width` are job_table()'s, for the refusal. Errors:
/// kInvalidArgument (neither a name nor `all`, or both), and those of find_jobs().
std::vector<JobEntry> jobs_to_stop(const std::vector<JobEntry>& jobs, const std::string& name,
                                   bool all, double now, size_t width);

}  // namespace lockstep::inline internal
