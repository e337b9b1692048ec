#pragma once
// Writing to a terminal that somebody may not read (paged, a frozen ssh). It is called writable
// while any room is left, so who writes much to it sleeps; and while an end of line, which takes
// two bytes, has no room, one that does not sleep would try again and again.

#include <atomic>
#include <thread>

#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// Takes bytes without ever blocking, and passes them on from a thread of its own: only that one
/// sleeps in a write while nobody reads the terminal.
class TerminalPump {
 public:
  /// Errors: kIo (no descriptors).
  explicit TerminalPump(int terminal);
  /// Returns when all bytes have been passed on, or a write has failed.
  ~TerminalPump();
  TerminalPump(const TerminalPump&) = delete;
  TerminalPump& operator=(const TerminalPump&) = delete;

  /// Where to write. A write fails with EPIPE once the terminal has failed.
  int fd() const { return in_.get(); }
  /// errno of the write that failed; 0: none did.
  int error() const { return error_; }

 private:
  void pass_on();

  const int terminal_;
  UniqueFd in_;
  UniqueFd out_;  ///< The thread's.
  std::atomic<int> error_ = 0;
  std::thread thread_;
};

}  // namespace lockstep
