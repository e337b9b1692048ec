#pragma once
// The present time as a number, for files, messages and memory that processes share.

#include <chrono>
#include <cstdint>

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

}  // namespace lockstep::inline internal
