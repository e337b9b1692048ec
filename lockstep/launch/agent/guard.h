#pragma once
// A process that outlives an agent by a moment, to end what a killed agent cannot.

#include <sys/types.h>

#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// The kernel kills a killed agent's workers (see spawn()), but not the workers' own children. This
/// small process does: it waits for the agent's end of a pipe to close, however that happens, and
/// then kills every process group it was told of, and every process of this user whose environment
/// has all of `marks` (processes that left their group). When the agent ends in order it first
/// takes the guard down. Of a killed agent it also removes
/// the files that were the agent's own.
class Guard {
 public:
  /// Forks the guard. marks: "NAME=VALUE". At most `max_groups` are watched at a time. files:
  /// to remove, and the folders that the first `folders` of them are in where those are empty then.
  /// Errors: kIo.
  Guard(const std::vector<std::string>& marks, size_t max_groups,
        const std::vector<std::string>& files, size_t folders);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  void watch(pid_t group);
  void forget(pid_t group);
  /// Ends the guard, without waiting for that as the destructor does: nothing is left to guard.
  void dismiss();
  pid_t pid() const { return pid_; }

 private:
  void tell(pid_t message);

  UniqueFd pipe_;
  pid_t pid_ = -1;
};

/// Of no other agent on this host, ever: pid and time since boot.
std::string agent_mark();

}  // namespace lockstep
