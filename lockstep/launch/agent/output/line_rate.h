#pragma once
// So that one rank that prints without end does not hide what the others say.

#include <chrono>

namespace lockstep {

/// Of one rank's lines, those that the console shows: `lines_a_second` on average, as many at once.
/// Pure: time is an argument.
class LineRate {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// lines_a_second 0: all.
  explicit LineRate(int lines_a_second) : limit_(lines_a_second), left_(lines_a_second) {}

  struct Verdict {
    bool show = true;
    long dropped = 0;  ///< Lines dropped since the last that was shown; to be told before this one.
  };
  Verdict line(Time now);

  /// Lines dropped and not told yet; from here on they are.
  long take_dropped();

 private:
  int limit_;
  double left_;
  long dropped_ = 0;
  Time filled_{};
};

}  // namespace lockstep
