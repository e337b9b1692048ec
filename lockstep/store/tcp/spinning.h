#pragma once

#include <algorithm>
#include <chrono>

namespace lockstep::inline internal {

/// Whether a thread should poll for an answer for a moment before it sleeps: mostly the answer
/// comes sooner than a sleeping thread wakes up. After a vain attempt (a long wait, or too few
/// cores) the next waits sleep at once. Their number doubles with each vain attempt in a row.
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
  int skip_ = 8;  ///< A client with only a few calls, at the start of a large job, sleeps.
  int next_skip_ = 2;
};

/// Calls `poll` (with 0: look; with wait_ms: sleep) until it returns something other than 0, or its
/// time is over. It looks for `look_for` at most.
template <class Poll>
int poll_spinning(Spinning& spinning, int wait_ms, Poll poll,
                  std::chrono::microseconds look_for = Spinning::kTime) {
  if (wait_ms != 0 && spinning.worth_it()) {
    const auto end = std::chrono::steady_clock::now() + look_for;
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

}  // namespace lockstep::inline internal
