#include "lockstep/base/signal_blocking_thread.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace lockstep {
namespace {

TEST(ThreadWithSignalsBlocked, BlocksSignalsThatAreForTheProgramAndNotItsOwnFaults) {
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  sigset_t inside;
  start_thread_with_signals_blocked([&] {
    ::pthread_sigmask(SIG_SETMASK, nullptr, &inside);
  }).join();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGUSR1, SIGALRM, SIGPIPE})
    EXPECT_EQ(::sigismember(&inside, signal), 1) << signal;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    EXPECT_EQ(::sigismember(&inside, signal), 0) << signal;
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(::sigismember(&after, SIGTERM), ::sigismember(&before, SIGTERM));
}

TEST(ThreadWithSignalsBlocked, AFaultCallsTheProgramsHandler) {
  EXPECT_EXIT(
      {
        struct sigaction action = {};
        action.sa_handler = [](int) { ::_exit(7); };
        ::sigaction(SIGSEGV, &action, nullptr);
        start_thread_with_signals_blocked([] { ::raise(SIGSEGV); }).join();
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace lockstep
