#pragma once
// A process of this user with a rank in it, whoever started it.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/world/environment.h"

namespace lockstep {

struct RankProcess {
  pid_t pid = 0;
  int rank = 0;  ///< This and the next as its flight recorder has them.
  int size = 1;
  bool is_thread = false;        ///< It has several ranks, each a thread.
  std::vector<pid_t> ancestors;  ///< Its parent first; without process 1.
  pid_t session = 0;
  double began = 0;  ///< Seconds since 1970.
  bool stopped = false;
  std::string program;         ///< Path of what it runs; this and the next two "" where unknown.
  std::string parent_program;  ///< Of its parent, also of process 1.
  std::string parent_name;     ///< As ps has it, "bash"; of process 1 none.
  std::string folder;          ///< The working directory.
  std::vector<std::string> command;
  Environment environment;  ///< As it was when the program began: spawn() sets more in it later.
};

/// What /proc says of `pid`; nothing where it has ended, or is of another user. Cost: six reads,
/// and one for each ancestor.
std::optional<RankProcess> read_rank_process(pid_t pid, int rank, int size);

}  // namespace lockstep
