#pragma once
// Writing to a terminal that may not be read (a pager, a frozen ssh). It counts as writable while
// any room is left, so a long write blocks. A non-blocking write would spin while a newline, which
// takes two bytes, has no room.

#include <atomic>
#include <memory>
#include <thread>

#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {

/// Takes bytes without ever blocking, and passes them on in its own thread. Only that thread blocks
/// in a write while the terminal is not read.
class TerminalPump {
 public:
  /// Errors: kIo (no descriptors).
  explicit TerminalPump(int terminal);
  /// Returns when all bytes have been passed on, a write has failed, or finish() gave up.
  ~TerminalPump();
  TerminalPump(const TerminalPump&) = delete;
  TerminalPump& operator=(const TerminalPump&) = delete;

  /// Where to write. A write fails with EPIPE once the terminal has failed.
  int fd() const { return in_.get(); }
  /// errno of the failed write; 0: none failed.
  int error() const { return end_->error; }

  /// Ends the input. True once all bytes have been passed on or a write has failed; false if
  /// neither happened by `until`. The thread then sleeps until the process ends. Call it once or,
  /// after true, again.
  bool finish(Deadline until);
  /// Bytes not passed on yet.
  size_t unread() const;

 private:
  /// The thread's state, which may outlive this object.
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

}  // namespace lockstep::inline internal
