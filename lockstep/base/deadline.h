#pragma once
// One time budget per call, shared by its retries and sub-steps.

#include <algorithm>
#include <chrono>

namespace lockstep {

using namespace std::chrono_literals;

/// When a whole operation must be done. A value: pass it on, do not make a new one per step.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline after(Clock::duration budget) { return Deadline(Clock::now() + budget); }
  static Deadline at(Clock::time_point when) { return Deadline(when); }

  bool passed() const { return Clock::now() >= at_; }
  Clock::time_point when() const { return at_; }

  /// Time left, never negative; rounded up, so that poll(2) does not spin at the end.
  std::chrono::milliseconds left() const {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now());
    return std::max(rest, std::chrono::milliseconds(0));
  }

  /// The same for poll(2) and epoll_wait(2), which take an int.
  int left_poll_ms() const {
    return static_cast<int>(
        std::min<std::chrono::milliseconds::rep>(left().count(), 1'000'000'000));
  }

  /// The earlier of this and `budget` from now: a bound for one step of the operation.
  Deadline at_most(Clock::duration budget) const {
    return Deadline(std::min(at_, Clock::now() + budget));
  }

 private:
  explicit Deadline(Clock::time_point when) : at_(when) {}
  Clock::time_point at_;
};

}  // namespace lockstep
