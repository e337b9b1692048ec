#pragma once
// Writing to a terminal that somebody may not read (paged, a frozen ssh). It is called writable
// while any room is left, so who writes much to it sleeps; and while an end of line, which takes
// two bytes, has no room, one that does not sleep would try again and again.

#include <atomic>
#include <memory>
#include <thread>

#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"

namespace lockstep {

/// Takes bytes without ever blocking, and passes them on from a thread of its own: only that one
/// sleeps in a write while nobody reads the terminal.
class TerminalPump {
 public:
  /// Errors: kIo (no descriptors).
  explicit TerminalPump(int terminal);
  /// Returns when all bytes have been passed on, or a write has failed, or finish() gave up.
  ~TerminalPump();
  TerminalPump(const TerminalPump&) = delete;
  TerminalPump& operator=(const TerminalPump&) = delete;

  /// Where to write. A write fails with EPIPE once the terminal has failed.
  int fd() const { return in_.get(); }
  /// errno of the write that failed; 0: none did.
  int error() const { return end_->error; }

  /// No more is written. True once all has been passed on or a write has failed; false: not by
  /// then. The thread is then left to sleep until the process ends. Call it once or, after true,
  /// again.
  bool finish(Deadline until);
  /// Bytes that it has not begun to pass on.
  size_t unread() const;

 private:
  /// What the thread works with, which may outlive this.
  struct End {
    int terminal = -1;
    UniqueFd out;
    std::atomic<int> error = 0;
  };
  static void pass_on(End* end);

  UniqueFd in_;
  std::shared_ptr<End> end_;
  std::thread thread_;
};

}  // namespace lockstep
