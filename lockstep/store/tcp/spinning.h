#pragma once

#include <algorithm>
#include <chrono>

namespace lockstep {

/// Whether a thread that awaits an answer should first ask again and again for a moment instead of
/// sleeping: an answer mostly comes sooner than a sleeping thread is awake again. Where that was in
/// vain (a wait for somebody else, more to do than there are cores), the next waits sleep at once;
/// with each vain attempt in a row twice as many.
class Spinning {
 public:
  static constexpr auto kTime = std::chrono::microseconds(30);

  bool worth_it() {
    if (skip_ > 0) --skip_;
    return skip_ == 0;
  }
  void was_useful() { next_skip_ = 2; }
  void was_vain() {
    skip_ = next_skip_;
    next_skip_ = std::min(2 * next_skip_, 128);
  }

 private:
  int skip_ = 8;  ///< Who asks a few things only, at the start of a job with many, sleeps.
  int next_skip_ = 2;
};

/// Calls `poll` (with 0: look; with wait_ms: sleep) until it returns something else than 0, or its
/// time is over.
template <class Poll>
int poll_spinning(Spinning& spinning, int wait_ms, Poll poll) {
  if (wait_ms != 0 && spinning.worth_it()) {
    const auto end = std::chrono::steady_clock::now() + Spinning::kTime;
    do {
      if (const int ready = poll(0); ready != 0) {
        spinning.was_useful();
        return ready;
      }
    } while (std::chrono::steady_clock::now() < end);
    spinning.was_vain();
  }
  return poll(wait_ms);
}

}  // namespace lockstep
