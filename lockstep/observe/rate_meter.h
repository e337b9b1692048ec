#pragma once
// A rate per second, averaged over a recent window.

#include <chrono>
#include <cstdint>
#include <deque>

namespace lockstep::inline internal {

/// Moving average over a window of time. Callers pass the time, so tests need no clock. One thread.
class RateMeter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RateMeter(Clock::duration window = std::chrono::seconds(10)) : window_(window) {}

  /// Starts counting at `now`. Call before the first add(), and after a pause (evaluation, saving)
  /// that must not count.
  void start(Clock::time_point now);
  /// `count` more were done by `now`.
  void add(int64_t count, Clock::time_point now);
  /// Per second, over the window; 0 before the first add().
  double per_second() const;

 private:
  struct Mark {
    Clock::time_point when;
    int64_t total;
  };
  Clock::duration window_;
  int64_t total_ = 0;
  std::deque<Mark> marks_;  // in order; the first is the window's start
};

}  // namespace lockstep::inline internal
