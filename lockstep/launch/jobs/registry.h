#pragma once
// The agents that run on this host: a folder for each user, with a file for each agent.

#include <string>
#include <vector>

#include "lockstep/base/process_handle.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/jobs/job_entry.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// Folders of this user's agents. With $LOCKSTEP_JOBS_DIR only that one: it is made if missing, and
/// removed with the last agent, unless past_jobs.h keeps entries there. Otherwise, best first,
/// $XDG_RUNTIME_DIR/lockstep and /tmp/lockstep-UID. An agent takes the first usable one; a listing
/// reads all, because a job may have been started without the variable.
std::vector<std::string> registry_folders(const Environment& environment);

/// An agent's entry, as long as the agent lives. A killed agent's entry is removed by its watchdog,
/// or by the next list_jobs(). The file stays locked while the agent lives; the lock shows whether
/// an agent of another PID namespace is alive. Nothing is written before the first write(): a short
/// job should not wait for a disk.
class JobFile {
 public:
  explicit JobFile(const std::vector<std::string>& registries);
  ~JobFile();
  JobFile(const JobFile&) = delete;
  JobFile& operator=(const JobFile&) = delete;

  /// Writes the entry into the first of `registries` that this user owns and only this user can
  /// write to. Does nothing if there is none (a full or read-only disk): the job runs all the same.
  void write(JobEntry entry);
  bool written() const { return !path_.empty(); }
  /// The destructor does the same.
  void remove();

  /// Paths that the entry may have.
  const std::vector<std::string>& candidates() const { return candidates_; }

 private:
  void open_first();

  std::vector<std::string> candidates_;
  std::string path_;
  UniqueFd file_;        ///< The entry, locked if the file system supports locks.
  bool locked_ = false;  ///< It does.
};

/// A folder of this user's that no other can write to; in /tmp anybody may have made one.
bool is_own_folder(const std::string& path);

/// A path without its extension for files of this agent alone: in $XDG_RUNTIME_DIR, else in /tmp.
std::string own_file_base(const Environment& environment);

/// Without /proc an agent's PID namespace is unknown: such an agent may be shown, but must never
/// get a signal.
enum class WithoutProc { kNone, kAllThatHoldTheirLocks };

/// Agents that are alive in this PID namespace, the oldest first. Removes entries of dead ones; of
/// other namespaces, those that are not locked any more.
std::vector<JobEntry> list_jobs(const std::vector<std::string>& registries,
                                WithoutProc without_proc = WithoutProc::kNone);

/// An agent of this host, held so that a reused pid cannot be mistaken for one.
struct HeldAgent {
  JobEntry job;
  ProcessHandle process;
  /// Waits at most `wait_ms` for its end.
  bool ended(int wait_ms) const;
};

/// This user's agents on this host, the oldest first, with their workers' reports.
std::vector<JobEntry> running_jobs(WithoutProc without_proc = WithoutProc::kNone);

/// The agents of `jobs` that are still alive.
std::vector<HeldAgent> hold_agents(std::vector<JobEntry> jobs);

/// One of `jobs` has `name` as its run's id or as its pid.
bool is_exactly_named(const std::vector<JobEntry>& jobs, const std::string& name);
/// The same, or `name` is a prefix of a run's id.
bool is_named(const std::vector<JobEntry>& jobs, const std::string& name);

/// The jobs that `name` means: a run's id, a prefix of just one, or an agent's pid; empty: the only
/// run there is. Errors: kNotFound, kInvalidArgument (several; names them).
std::vector<JobEntry> find_jobs(const std::vector<JobEntry>& jobs, const std::string& name);

}  // namespace lockstep::inline internal
