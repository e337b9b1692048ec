#include "lockstep/train/signals.h"

#include <signal.h>

namespace lockstep {
namespace {

volatile sig_atomic_t noted = 0;
struct sigaction old_term, old_int;

void note(int signal) {
  if (noted == 0) noted = signal;
}

}  // namespace

SignalWatch::SignalWatch() {
  noted = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, &old_term);
  sigaction(SIGINT, &action, &old_int);
}

SignalWatch::~SignalWatch() {
  sigaction(SIGTERM, &old_term, nullptr);
  sigaction(SIGINT, &old_int, nullptr);
}

int SignalWatch::pending() const {
  return noted;
}

}  // namespace lockstep
