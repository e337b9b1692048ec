#pragma once
// What an agent says about itself while it runs, for `lockstep ps`, `stop` and `logs`.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/job/step_board.h"

namespace lockstep {

/// Of a process, so that another one that gets its number later is not taken for it.
struct ProcessKey {
  pid_t pid = 0;
  std::string started;       ///< Clock ticks since boot, as /proc/PID/stat says.
  std::string namespace_id;  ///< Of the PID namespace, in which alone pid means anything.

  /// "123.4567.4026531836", a name for a folder; the reverse: nothing where it is no such name.
  std::string text() const;
  static std::optional<ProcessKey> parse(const std::string& text);
};

/// This process's. Cost: two reads of /proc.
ProcessKey own_key();

/// It exists and is stopped, as by SIGSTOP.
bool is_stopped(pid_t pid);

/// The process lives, or may live: it is of another PID namespace, of which this one cannot tell.
enum class Liveness { kAlive, kDead, kElsewhere };
Liveness liveness(const ProcessKey& key, const ProcessKey& own);

/// Now, as entries count time.
double seconds_since_1970();

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
  std::string attempt_folder;  ///< Of the present generation, in it.
  std::string steps;           ///< Path of the present generation's StepBoard; may be empty.
  std::vector<std::string> command;
  double ended = 0;   ///< Seconds since 1970; 0: it runs, or was killed.
  int exit_code = 0;  ///< Of the agent that ended.
  std::string why;    ///< The job's first failure, in one line; empty: none is known.
  std::string cause;  ///< The same as failure_words().
  std::optional<JobProgress> progress;  ///< Read from `steps` by who lists jobs; not in the file.
  bool locked = false;                  ///< The agent holds a lock on the file while it lives.
  bool over = false;                    ///< It runs no more; not in the file.
  bool stopped = false;  ///< The agent is, as by Ctrl-Z; told by the kernel, not in the file.
};

std::string to_json(const JobEntry& entry);
/// Nothing where `text` is no entry.
std::optional<JobEntry> job_entry_from_json(const std::string& text);

}  // namespace lockstep
