#pragma once
// A process that outlives a killed agent for a moment and ends the agent's processes.

#include <sys/types.h>

#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

/// The kernel kills a killed agent's workers (see spawn()), but not the workers' own children. This
/// small process kills them. It waits until the agent's end of a pipe closes, for whatever reason.
/// Then it kills every watched process group, and every process of this user whose environment has
/// all of `marks` (processes that left their group). It also removes the agent's own files. An
/// agent that ends normally takes the watchdog down first.
class Watchdog {
 public:
  /// Forks the watchdog. marks: "NAME=VALUE". It watches at most `max_groups` groups at a time.
  /// files: files to remove, and the folders of the first `folders` of them if empty then. Errors:
  /// kIo.
  Watchdog(const std::vector<std::string>& marks, size_t max_groups,
           const std::vector<std::string>& files, size_t folders);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void watch(pid_t group);
  void forget(pid_t group);
  /// Ends the watchdog because nothing is left to watch. Unlike the destructor, does not wait for
  /// its end.
  void dismiss();
  pid_t pid() const { return pid_; }

 private:
  void send(pid_t message);

  UniqueFd pipe_;
  pid_t pid_ = -1;
};

/// Unique on this host for ever: pid and time since boot.
std::string agent_mark();

}  // namespace lockstep::inline internal
