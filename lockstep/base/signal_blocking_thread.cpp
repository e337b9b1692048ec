#include "lockstep/base/signal_blocking_thread.h"

#include <signal.h>

#include <utility>

namespace lockstep::inline internal {

std::thread start_thread_with_signals_blocked(std::function<void()> body) {
  struct Blocked {
    Blocked() {
      sigset_t blocked;
      ::sigfillset(&blocked);
      // Signals of a thread's own faults: if blocked, they end the process without the program's
      // handler.
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
        ::sigdelset(&blocked, fault);
      ::pthread_sigmask(SIG_SETMASK, &blocked, &before);
    }
    ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };
  const Blocked blocked;
  return std::thread(std::move(body));
}

}  // namespace lockstep::inline internal
