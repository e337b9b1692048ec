#pragma once
// A Deadline gives one time budget to a call, which its retries and sub-steps share.

#include <chrono>

namespace lockstep {

/// The time at which a whole operation must be done. A value: pass it on, do not make a new one per
/// step.
///
/// Use:
///   const auto deadline = lockstep::Deadline::after(std::chrono::seconds(30));
///   lockstep::World world = lockstep::World::join(deadline);
///
/// The deadline moves by the time in which the process did not run: stopped, or paused with its
/// container or virtual machine. So a caller that slept until when() calls passed() before it
/// reports a timeout.
/// Threads: any. Cost: one reading of the clock. Errors: none.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline after(Clock::duration budget);
  /// The same; `now` becomes the clock's reading, for a caller that needs it too.
  static Deadline after(Clock::duration budget, Clock::time_point& now);
  static Deadline at(Clock::time_point when);

  bool passed() const;
  Clock::time_point when() const;  ///< With the pauses known so far.

  /// Time left, never negative; rounded up, so that poll(2) does not spin at the end.
  std::chrono::milliseconds left() const;
  /// left() for poll(2) and epoll_wait(2), which take an int.
  int left_poll_ms() const;

  /// The earlier of this and `budget` from now: a bound for one step of the operation.
  Deadline at_most(Clock::duration budget) const;

 private:
  explicit Deadline(Clock::time_point own) : own_(own) {}
  Clock::time_point own_;  // In the process' own time.
};

}  // namespace lockstep
