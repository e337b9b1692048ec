#pragma once

#include <signal.h>

#include <set>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

/// For the first process of a container, which the kernel does not end by a signal without a
/// handler. Each of `ending` then ends this process with 128 + its number, unless a SignalGate
/// takes it. Does nothing in other processes, nor for an ignored signal.
void end_as_init(const std::set<int>& ending);

/// Whether the kernel would stop this process at Ctrl-Z. It does not in an orphaned process group,
/// such as that of `docker run -it`, which no shell could continue. Cost: a fork.
bool may_be_stopped();

/// While it lives, the signals that an agent acts on (`ending`, USR1, USR2, TSTP, CONT, CHLD) come
/// out of fd() instead of interrupting. Signals that were already ignored (nohup, a shell's
/// background job) stay ignored, unless the user `named` them. SIGPIPE is ignored: a write to a
/// closed pipe is an ordinary error. Construct it before threads start, so that they inherit the
/// mask.
class SignalGate {
 public:
  explicit SignalGate(const std::set<int>& ending, bool named = false);
  ~SignalGate();
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;

  int fd() const { return fd_.get(); }
  /// Readable while one of `ending` is pending: for callers that wait for something else meanwhile.
  /// Do not read from it.
  int ending_fd() const { return ending_fd_.get(); }

  /// The next pending signal; 0 if there is none.
  int next();

  /// The mask from before, with which workers must start.
  const sigset_t& original_mask() const { return original_; }

 private:
  sigset_t original_{};
  UniqueFd fd_;
  UniqueFd ending_fd_;
};

}  // namespace lockstep::inline internal
