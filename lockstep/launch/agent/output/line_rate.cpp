#include "lockstep/launch/agent/output/line_rate.h"

#include <algorithm>
#include <utility>

namespace lockstep {

LineRate::Verdict LineRate::line(Time now) {
  if (limit_ == 0) return {};
  if (filled_ != Time{}) {
    const double seconds = std::chrono::duration<double>(now - filled_).count();
    left_ = std::min<double>(limit_, left_ + seconds * limit_);
  }
  filled_ = now;
  // Once lines are dropped, a tenth of a second's worth must have gathered: else every other line
  // would be shown, each with a count.
  const double needed = dropped_ > 0 ? std::max(1.0, limit_ / 10.0) : 1.0;
  if (left_ < needed) {
    ++dropped_;
    return {false, 0};
  }
  left_ -= 1;
  return {true, take_dropped()};
}

long LineRate::take_dropped() {
  return std::exchange(dropped_, 0);
}

}  // namespace lockstep
