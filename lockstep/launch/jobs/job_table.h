#pragma once
// The output of `lockstep ps`. Pure: time is an argument.

#include <string>
#include <vector>

#include "lockstep/launch/jobs/job_entry.h"
#include "lockstep/launch/jobs/other_jobs.h"

namespace lockstep::inline internal {

/// An age: "42 s", "5 min", "3.2 h", "12 d".
std::string format_age(double seconds);

/// "exit code 3, 5 min ago (rank 1: no such data)"; "was killed" if its agent was.
std::string end_of_job(const JobEntry& job, double now);

/// Aligned columns with a heading, without columns that are empty in all rows. Long commands are
/// cut at `width` (0: never). With `others`, LAUNCHER names the launcher of each job. Past jobs
/// stand last in `jobs`, and are shown last.
std::string job_table(const std::vector<JobEntry>& jobs, double now, size_t width,
                      const std::vector<OtherJob>& others = {});

/// A JSON list of the entries. "seconds" is the time since each began, or its duration. Entries of
/// `others` have "launcher", "ranks" and "pids", and lack an agent's members. Progress has the same
/// members in both.
std::string jobs_as_json(const std::vector<JobEntry>& jobs, double now,
                         const std::vector<OtherJob>& others = {});

}  // namespace lockstep::inline internal
