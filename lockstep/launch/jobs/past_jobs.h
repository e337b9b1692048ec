#pragma once
// Runs that this user started on this host, kept after their ends: how they ended, and where their
// --log_dir files are.

#include <string>
#include <vector>

#include "lockstep/launch/jobs/job_entry.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// The folder of past runs: $LOCKSTEP_JOBS_DIR/past; without that variable
/// $XDG_STATE_HOME/lockstep/past, else $HOME/.local/state/lockstep/past; "": none.
std::string past_jobs_folder(const Environment& environment);

/// Stores an agent's entry, from the first write on. In `folder` the newest kMostPastJobs entries
/// with files stay, and as many without. Does nothing unless the folder can be this user's alone.
void remember_job(const std::string& folder, const JobEntry& entry);
inline constexpr size_t kMostPastJobs = 100;

/// Why no run can be stored in `folder`: "FOLDER cannot be written"; "" if it can.
std::string why_not_remembered(const std::string& folder);

/// Past runs without files, or with files that still exist; the newest first.
std::vector<JobEntry> past_jobs(const std::string& folder);

/// This user's past agents with files, without those of `running`; the newest first.
std::vector<JobEntry> jobs_that_are_over(const std::vector<JobEntry>& running);

/// The agents of the newest run that `name` means (by its id, else by a prefix); empty: none.
std::vector<JobEntry> find_past_job(const std::vector<JobEntry>& past, const std::string& name);

}  // namespace lockstep::inline internal
