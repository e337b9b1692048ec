#include "lockstep/train/signals.h"

#include <signal.h>

#include <atomic>
#include <cstdint>

#include "lockstep/base/clock.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kSameSignal = 500'000'000;  // nanoseconds

volatile sig_atomic_t noted = 0;
std::atomic<int64_t> noted_at{0};
std::atomic<bool> save_asked{false};
struct sigaction old_term, old_int, old_hup, old_usr1;

/// Calls only async-signal-safe functions.
void note(int signal) {
  const int64_t now = monotonic_ns();
  if (noted == 0) {
    noted_at = now;
    noted = signal;
  } else if (signal == SIGINT && now - noted_at >= kSameSignal) {
    sigaction(SIGINT, &old_int, nullptr);
    raise(SIGINT);  // takes effect when this handler returns
  }
}

void ask_to_save(int /*signal*/) {
  save_asked = true;
}

}  // namespace

SignalWatch::SignalWatch() {
  noted = 0;
  save_asked = false;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, &old_term);
  sigaction(SIGINT, &action, &old_int);
  sigaction(SIGHUP, nullptr, &old_hup);
  if (old_hup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  action.sa_handler = ask_to_save;
  sigaction(SIGUSR1, nullptr, &old_usr1);
  if (old_usr1.sa_handler != SIG_IGN) sigaction(SIGUSR1, &action, nullptr);
}

SignalWatch::~SignalWatch() {
  sigaction(SIGTERM, &old_term, nullptr);
  sigaction(SIGINT, &old_int, nullptr);
  sigaction(SIGHUP, &old_hup, nullptr);
  sigaction(SIGUSR1, &old_usr1, nullptr);
}

int SignalWatch::pending() const {
  return noted;
}

bool SignalWatch::take_save_request() const {
  return save_asked.exchange(false);
}

}  // namespace lockstep::inline internal
