#pragma once
// The measurement of StepTimings.

#include <chrono>

#include "lockstep/ddp_options.h"

namespace lockstep::inline internal {

/// Adds up the times of one backward pass. The caller passes the time.
class PassClock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void begin(Time now);
  /// A gradient has been handled; `in_flight`: true if communication is in progress from here on.
  void gradient(Time now, bool in_flight);
  /// All gradients have been handled; the rest is waiting.
  void computed(Time now);
  void end(Time now);

  /// Valid after end(): backward, comm_hidden, comm_exposed.
  const StepTimings& timings() const { return timings_; }
  Time computed_at() const { return computed_at_; }

 private:
  Time begin_, last_, computed_at_;
  bool in_flight_ = false;
  StepTimings timings_;
};

double milliseconds(std::chrono::steady_clock::duration time);

}  // namespace lockstep::inline internal
