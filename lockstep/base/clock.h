#pragma once
// The present time as a number, for files, messages and memory that processes share; and how long
// work still takes.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace lockstep::inline internal {

/// CLOCK_MONOTONIC, which is one for all processes of a host. Safe in a signal handler.
inline int64_t monotonic_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// CLOCK_REALTIME.
inline int64_t ns_since_1970() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

inline double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Time for `steps_left` more steps at the pace of `steps_done` in `elapsed`, at most some 30,000
/// years; none before the first. `elapsed` is the time since the first of them began, with all that
/// came between, such as evaluations.
inline std::optional<std::chrono::seconds> estimate_left(int64_t steps_done, int64_t steps_left,
                                                         std::chrono::nanoseconds elapsed) {
  if (steps_done <= 0) return std::nullopt;
  constexpr double kMost = 1e12;
  const double each =
      std::chrono::duration<double>(elapsed).count() / static_cast<double>(steps_done);
  const double left = each * static_cast<double>(std::max<int64_t>(steps_left, 0));
  return std::chrono::round<std::chrono::seconds>(
      std::chrono::duration<double>(std::clamp(left, 0.0, kMost)));
}

}  // namespace lockstep::inline internal
