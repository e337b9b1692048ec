#include "lockstep/base/quiet_thread.h"

#include <signal.h>

#include <utility>

namespace lockstep {

std::thread start_quiet_thread(std::function<void()> body) {
  struct Blocked {
    Blocked() {
      sigset_t all;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };
  const Blocked blocked;
  return std::thread(std::move(body));
}

}  // namespace lockstep
