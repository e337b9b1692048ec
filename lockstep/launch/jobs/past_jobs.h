#pragma once
// Runs that this user started on this host, also after their ends: how they ended, and where the
// files of those with --log_dir are.

#include <string>
#include <vector>

#include "lockstep/launch/jobs/job_entry.h"
#include "lockstep/world/environment.h"

namespace lockstep {

/// Where they stand: $LOCKSTEP_JOBS_DIR/past; without that variable $XDG_STATE_HOME/lockstep/past,
/// else $HOME/.local/state/lockstep/past; "": nowhere.
std::string past_jobs_folder(const Environment& environment);

/// An agent's entry, from the first write on. Of the entries in `folder` with files the newest
/// kMostPastJobs stay, and as many without. Does nothing where the folder cannot be this user's
/// alone.
void remember_job(const std::string& folder, const JobEntry& entry);
inline constexpr size_t kMostPastJobs = 100;

/// Why nothing can be remembered in `folder`: "FOLDER cannot be written"; "": it can.
std::string why_not_remembered(const std::string& folder);

/// Those without files, and those whose files are still there; the newest first.
std::vector<JobEntry> past_jobs(const std::string& folder);

/// The agents of the newest run that `name` means (its id, else the beginning of one); empty: none.
std::vector<JobEntry> find_past_job(const std::vector<JobEntry>& past, const std::string& name);

}  // namespace lockstep
