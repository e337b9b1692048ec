#pragma once
// A process that is killed while a child that it forked lives on.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>

#include "lockstep/base/unique_fd.h"

namespace lockstep::testing {

/// The child lives until this object ends.
class KilledParent {
 public:
  /// `own` runs in the process that is killed. It calls its argument while it holds what the child
  /// must not keep. Throws std::runtime_error if it does not.
  explicit KilledParent(const std::function<void(const std::function<void()>& end)>& own) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe");
    const UniqueFd out(ends[0]);
    in_.reset(ends[1]);
    const pid_t parent = ::fork();
    if (parent == 0) {
      try {
        own([&] { end_with_a_child(out.get()); });
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(parent, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
      throw std::runtime_error("the parent was not killed with a child");
  }

 private:
  /// The child kills: by then its handlers of fork() have run.
  void end_with_a_child(int out) {
    const pid_t self = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) ::_exit(1);
    if (child > 0) {
      while (true) ::pause();
    }
    ::kill(self, SIGKILL);
    in_.reset();
    char byte = 0;
    ::_exit(::read(out, &byte, 1) == 0 ? 0 : 1);
  }

  UniqueFd in_;
};

}  // namespace lockstep::testing
