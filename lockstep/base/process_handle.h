#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

/// One process: it stays the same when its pid becomes another's.
///
/// The handle is a pidfd. Where the kernel (before Linux 5.3) or a seccomp filter refuses pidfds, a
/// thread watches the process instead. It waits for a child of this process by waitid(2), which
/// leaves the child to reap(). For any other process it compares the start time in /proc ten times
/// a second. Such a thread must not exist while spawn() forks.
class ProcessHandle {
 public:
  ProcessHandle() = default;  ///< Of no process.
  /// Of no process either if there is none with this pid, or if descriptors or threads have run
  /// out; errno has the cause.
  explicit ProcessHandle(pid_t pid);
  /// Errors: kIo, where the constructor gives a handle of no process.
  static ProcessHandle of(pid_t pid);

  explicit operator bool() const { return fd_ != nullptr; }

  /// Becomes readable when the process ends. epoll reports pidfds in the order of their ends;
  /// threads may be out of order by the time until they are scheduled. -1: no process.
  int fd() const { return fd_ ? fd_->get() : -1; }

  /// Waits at most `wait_ms` for the end of the process; of no process it waits as long.
  bool ended(int wait_ms) const;

  /// False: nobody got the signal, as the process has ended or is another user's. Without a pidfd
  /// the start time is compared just before.
  bool send(int signal) const;

 private:
  void watch_by_thread();
  bool has_its_pid() const;

  pid_t pid_ = 0;
  std::shared_ptr<const UniqueFd> fd_;  ///< A pidfd, or an eventfd that the thread writes to.
  std::optional<std::string> started_;  ///< Without a pidfd: its start time; "" without /proc.
};

}  // namespace lockstep::inline internal
