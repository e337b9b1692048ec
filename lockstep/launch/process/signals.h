#pragma once

#include <signal.h>

#include <set>

#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// For the first process of a container, which the kernel does not end by a signal that it has no
/// handler for: each of `ending` ends this process with 128 + its number, whenever no SignalGate
/// takes it. Does nothing in another process, nor for a signal that is ignored.
void end_as_init(const std::set<int>& ending);

/// Whether the kernel would stop this process at Ctrl-Z. It does not in an orphaned process group,
/// as of `docker run -it`: there is no shell that could continue it. Cost: a fork.
bool may_be_stopped();

/// While it lives, the signals that an agent acts on (`ending`, USR1, USR2, TSTP, CONT, CHLD) come
/// out of fd() instead of interrupting; those that were ignored when it began (nohup, a background
/// job of a shell) stay so, unless the user `named` them. SIGPIPE is ignored: a write to a closed
/// pipe is an error like others. Construct it before threads start, so that they inherit the mask.
class SignalGate {
 public:
  explicit SignalGate(const std::set<int>& ending, bool named = false);
  ~SignalGate();
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;

  int fd() const { return fd_.get(); }
  /// Readable while one of `ending` is pending: for who waits for something else meanwhile. Do not
  /// read from it.
  int ending_fd() const { return ending_fd_.get(); }

  /// The next pending signal; 0 when there is none.
  int next();

  /// What was blocked before: what workers must start with.
  const sigset_t& original_mask() const { return original_; }

 private:
  sigset_t original_{};
  UniqueFd fd_;
  UniqueFd ending_fd_;
};

}  // namespace lockstep
