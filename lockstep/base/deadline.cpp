#include "lockstep/deadline.h"

#include <algorithm>

#include "lockstep/base/standstill.h"

namespace lockstep {

Deadline Deadline::after(Clock::duration budget) {
  return Deadline(this_moment().own() + budget);
}

Deadline Deadline::after(Clock::duration budget, Clock::time_point& now) {
  const Moment moment = this_moment();
  now = moment.now;
  return Deadline(moment.own() + budget);
}

Deadline Deadline::at(Clock::time_point when) {
  return Deadline(when - this_moment().missed);
}

bool Deadline::passed() const {
  return this_moment().own() >= own_;
}

Deadline::Clock::time_point Deadline::when() const {
  return own_ + this_moment().missed;
}

std::chrono::milliseconds Deadline::left() const {
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(own_ - this_moment().own());
  return std::max(rest, std::chrono::milliseconds(0));
}

int Deadline::left_poll_ms() const {
  return static_cast<int>(std::min<std::chrono::milliseconds::rep>(left().count(), 1'000'000'000));
}

Deadline Deadline::at_most(Clock::duration budget) const {
  return Deadline(std::min(own_, this_moment().own() + budget));
}

}  // namespace lockstep
