#include "lockstep/observe/rate_meter.h"

namespace lockstep::inline internal {

void RateMeter::start(Clock::time_point now) {
  total_ = 0;
  marks_.assign(1, {now, 0});
}

void RateMeter::add(int64_t count, Clock::time_point now) {
  if (marks_.empty()) start(now);
  total_ += count;
  marks_.push_back({now, total_});
  // The newest mark outside the window stays as its start, so a slow step always counts in part.
  while (marks_.size() > 2 && now - marks_[1].when >= window_) marks_.pop_front();
}

double RateMeter::per_second() const {
  if (marks_.size() < 2) return 0;
  const std::chrono::duration<double> span = marks_.back().when - marks_.front().when;
  if (span.count() <= 0) return 0;
  return static_cast<double>(marks_.back().total - marks_.front().total) / span.count();
}

}  // namespace lockstep::inline internal
