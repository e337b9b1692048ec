#pragma once
// One time budget per call, shared by its retries and sub-steps.

#include <algorithm>
#include <chrono>

#include "lockstep/base/standstill.h"

namespace lockstep {

using namespace std::chrono_literals;

/// When a whole operation must be done. A value: pass it on, do not make a new one per step.
///
/// It moves by the time for which the process stood still (standstill.h). So who slept until when()
/// asks passed() before he says that the time is over.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline after(Clock::duration budget) { return Deadline(this_moment().own() + budget); }
  static Deadline at(Clock::time_point when) { return Deadline(when - this_moment().missed); }

  bool passed() const { return this_moment().own() >= own_; }
  Clock::time_point when() const { return own_ + this_moment().missed; }  ///< As known by now.

  /// Time left, never negative; rounded up, so that poll(2) does not spin at the end.
  std::chrono::milliseconds left() const {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(own_ - this_moment().own());
    return std::max(rest, std::chrono::milliseconds(0));
  }

  /// The same for poll(2) and epoll_wait(2), which take an int.
  int left_poll_ms() const {
    return static_cast<int>(
        std::min<std::chrono::milliseconds::rep>(left().count(), 1'000'000'000));
  }

  /// The earlier of this and `budget` from now: a bound for one step of the operation.
  Deadline at_most(Clock::duration budget) const {
    return Deadline(std::min(own_, this_moment().own() + budget));
  }

 private:
  explicit Deadline(Clock::time_point own) : own_(own) {}
  Clock::time_point own_;  // in the process' own time
};

}  // namespace lockstep
