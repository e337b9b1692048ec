#include "lockstep/parallel/pass_clock.h"

namespace lockstep {

StepTimings& StepTimings::operator+=(const StepTimings& other) {
  forward += other.forward;
  backward += other.backward;
  comm_hidden += other.comm_hidden;
  comm_exposed += other.comm_exposed;
  slowest_wait += other.slowest_wait;
  copied += other.copied;
  buffers += other.buffers;
  buffer_average += other.buffer_average;
  return *this;
}

}  // namespace lockstep

namespace lockstep::inline internal {

double milliseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

void PassClock::begin(Time now) {
  begin_ = last_ = now;
  in_flight_ = false;
  timings_ = {};
}

void PassClock::gradient(Time now, bool in_flight) {
  if (in_flight_) timings_.comm_hidden += milliseconds(now - last_);
  last_ = now;
  in_flight_ = in_flight;
}

void PassClock::computed(Time now) {
  gradient(now, false);
  computed_at_ = now;
}

void PassClock::end(Time now) {
  timings_.comm_exposed = milliseconds(now - computed_at_);
  timings_.backward = milliseconds(now - begin_);
}

}  // namespace lockstep::inline internal
