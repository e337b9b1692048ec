#pragma once
// How StepTimings are measured.

#include <chrono>

#include "lockstep/step_timings.h"

namespace lockstep {

/// Adds up the times of one backward pass. It is told what time it is.
class PassClock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void begin(Time now);
  /// A gradient has been handled; `in_flight`: whether communication is under way from here on.
  void gradient(Time now, bool in_flight);
  /// All gradients have been handled; what follows is waiting.
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

}  // namespace lockstep
