#pragma once
// An agent's entry in the list of running jobs, for `lockstep ps`, `stop` and `logs`.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/job/progress_memory.h"

namespace lockstep::inline internal {

/// Identifies a process even if its pid is reused.
struct ProcessKey {
  pid_t pid = 0;
  std::string started;       ///< Clock ticks since boot, as in /proc/PID/stat.
  std::string namespace_id;  ///< pid_space_of_all_hosts(), within which alone `pid` is valid.

  /// "123.4567.4026531836", a name for a folder. parse() returns nothing for other names.
  std::string text() const;
  static std::optional<ProcessKey> parse(const std::string& text);
};

/// Key of this process. Cost: two reads of /proc.
ProcessKey own_key();

/// The process exists and is stopped, as by SIGSTOP.
bool is_stopped(pid_t pid);

/// kElsewhere: of another PID namespace, so its state is unknown.
enum class Liveness { kAlive, kDead, kElsewhere };
Liveness liveness(const ProcessKey& key, const ProcessKey& own);

struct JobEntry {
  pid_t pid = 0;  ///< Of the agent.
  std::string run_id;
  int node_rank = 0;
  int num_nodes = 1;
  int first_rank = 0;
  int local_size = 1;
  int world_size = 1;
  int restart_count = 0;
  double began = 0;  ///< Seconds since 1970, of the agent.
  std::string host;
  std::string folder;          ///< The working directory.
  std::string log_folder;      ///< Of the run, absolute; empty: no files.
  std::string attempt_folder;  ///< Of the present generation, inside log_folder.
  std::string steps;           ///< Path of the present generation's ProgressMemory; may be empty.
  std::vector<std::string> command;
  double ended = 0;                     ///< Seconds since 1970; 0: it runs, or was killed.
  int exit_code = 0;                    ///< Of the agent that ended.
  std::string why;                      ///< The job's first failure, in one line; empty: unknown.
  std::string cause;                    ///< The same as failure_words().
  std::optional<JobProgress> progress;  ///< Read from `steps` for a list; not in the file.
  bool locked = false;                  ///< The agent holds a lock on the file while it lives.
  bool over = false;                    ///< It has ended; not in the file.
  bool stopped = false;  ///< The agent is stopped, as by Ctrl-Z; from the kernel, not in the file.
};

std::string to_json(const JobEntry& entry);
/// Nothing if `text` is no entry.
std::optional<JobEntry> job_entry_from_json(const std::string& text);

}  // namespace lockstep::inline internal
