#pragma once
// A process that is killed while a child that it forked lives on.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <stdexcept>

#include "lockstep/base/unique_fd.h"

namespace lockstep::testing {

/// The child lives until this object ends.
class KilledParent {
 public:
  /// `own` runs in the process that is killed. It calls its argument while it holds what the child
  /// must not keep.
  explicit KilledParent(const std::function<void(const std::function<void()>& end)>& own) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe");
    const UniqueFd out(ends[0]);
    in_.reset(ends[1]);
    const pid_t parent = ::fork();
    if (parent == 0) {
      own([&] {
        if (::fork() == 0) live_on(out.get());
        ::raise(SIGKILL);
      });
      ::_exit(1);
    }
    ::waitpid(parent, nullptr, 0);
  }

 private:
  [[noreturn]] void live_on(int out) {
    in_.reset();
    char byte = 0;
    ::_exit(::read(out, &byte, 1) == 0 ? 0 : 1);
  }

  UniqueFd in_;
};

}  // namespace lockstep::testing
