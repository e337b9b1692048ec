#pragma once
// A process of this user that contains a rank, whatever started it.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/job/progress_memory.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

struct RankProcess {
  pid_t pid = 0;
  int rank = 0;  ///< As its flight recorder has it; so is the next.
  int size = 1;
  bool is_thread = false;        ///< It has several ranks, each a thread.
  std::vector<pid_t> ancestors;  ///< Its parent first; without process 1.
  pid_t session = 0;
  std::string network;  ///< Its network namespace, "net:[4026531840]"; "" if unknown.
  double began = 0;     ///< Seconds since 1970.
  bool stopped = false;
  std::string program;         ///< Path of its program; this and the next two "" if unknown.
  std::string parent_program;  ///< Of its parent, even if that is process 1.
  std::string parent_name;     ///< As in ps, "bash"; empty for process 1.
  std::string folder;          ///< The working directory.
  std::vector<std::string> command;
  std::optional<RankSteps> steps;  ///< Its report in memory of its own, if it made one.
  Environment environment;         ///< As at the program's start: spawn() sets more in it later.
};

/// Data of /proc about `pid`; nothing if it has ended, or belongs to another user. Cost: seven
/// reads, and one for each ancestor.
std::optional<RankProcess> read_rank_process(pid_t pid, int rank, int size);

}  // namespace lockstep::inline internal
