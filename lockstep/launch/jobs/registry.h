#pragma once
// The agents that run on this host: a folder of each user's own with a file for each agent.

#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/jobs/job_entry.h"
#include "lockstep/world/environment.h"

namespace lockstep {

/// Where this user's agents stand: $LOCKSTEP_JOBS_DIR, which is made where it is not there and
/// removed with the last agent, unless past_jobs.h keeps some there, and nowhere else; without it,
/// best first, $XDG_RUNTIME_DIR/lockstep, /tmp/lockstep-UID. An agent takes the first that it can
/// have; who looks for agents looks into all, because a job may have been started without the
/// variable.
std::vector<std::string> registry_folders(const Environment& environment);

/// An agent's entry, for as long as the agent lives. That of a killed one is removed by its guard,
/// or by the next list_jobs(), which sees by a lock whether one of another PID namespace lives: its
/// file is locked for as long. Nothing is written before the first write(): a job that is over in a
/// moment should not wait for a disk.
class JobFile {
 public:
  explicit JobFile(const std::vector<std::string>& registries);
  ~JobFile();
  JobFile(const JobFile&) = delete;
  JobFile& operator=(const JobFile&) = delete;

  /// Into the first of `registries` that is this user's and only theirs to write to. Where there is
  /// none (a full or read-only disk) nothing happens: a job runs all the same.
  void write(JobEntry entry);
  bool written() const { return !path_.empty(); }
  /// Also done by the destructor.
  void remove();

  /// Where the entry may be.
  const std::vector<std::string>& candidates() const { return candidates_; }

 private:
  void open_first();

  std::vector<std::string> candidates_;
  std::string path_;
  UniqueFd file_;        ///< The entry, locked where the folder knows locks.
  bool locked_ = false;  ///< It does.
};

/// A folder of this user's that no other can write to; in /tmp anybody may have made one.
bool is_own_folder(const std::string& path);

/// A name without its end for files of this agent alone: in $XDG_RUNTIME_DIR, else in /tmp.
std::string own_file_base(const Environment& environment);

/// Where /proc is not mounted nobody can tell of which PID namespace an agent is: to be shown, and
/// never to be sent a signal.
enum class WithoutProc { kNone, kAllThatHoldTheirLocks };

/// Agents that are alive in this PID namespace, the oldest first. Removes what dead ones left; of
/// another namespace's those that are not locked any more.
std::vector<JobEntry> list_jobs(const std::vector<std::string>& registries,
                                WithoutProc without_proc = WithoutProc::kNone);

/// One of `jobs` has `name` as its run's id or as its process id.
bool is_exactly_named(const std::vector<JobEntry>& jobs, const std::string& name);
/// The same, or `name` is the beginning of a run's id.
bool is_named(const std::vector<JobEntry>& jobs, const std::string& name);

/// Of `jobs` those that `name` means: a run's id, the beginning of just one, or an agent's process
/// id; empty: the only run there is. Errors: kNotFound, kInvalidArgument (several; names them).
std::vector<JobEntry> find_jobs(const std::vector<JobEntry>& jobs, const std::string& name);

}  // namespace lockstep
