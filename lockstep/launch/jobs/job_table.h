#pragma once
// What `lockstep ps` prints. Pure: time is an argument.

#include <string>
#include <vector>

#include "lockstep/launch/jobs/job_entry.h"
#include "lockstep/launch/jobs/other_jobs.h"

namespace lockstep {

/// "42 s", "5 min", "3.2 h", "12 d": since `began`.
std::string format_age(double seconds);

/// "0:07", "1:02:03", "2d 03:04": to the end of a run.
std::string format_left(double seconds);

/// "exit code 3, 5 min ago (rank 1: no such data)"; "was killed" where its agent was.
std::string end_of_job(const JobEntry& job, double now);

/// Columns that line up, with a heading, without those that have nothing in any row; long commands
/// are cut at `width` (0: never). Where there are `others`, LAUNCHER names the launcher of each.
/// Of `jobs` those that are over stand behind the others, and are shown last.
std::string job_table(const std::vector<JobEntry>& jobs, double now, size_t width,
                      const std::vector<OtherJob>& others = {});

/// A JSON list of the entries, with "seconds" since each began, or from then to its end. Those of
/// `others` have "launcher", "ranks" and "pids", and lack what only an agent knows.
std::string jobs_as_json(const std::vector<JobEntry>& jobs, double now,
                         const std::vector<OtherJob>& others = {});

}  // namespace lockstep
