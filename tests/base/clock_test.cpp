#include "lockstep/base/clock.h"

#include <gtest/gtest.h>
#include <time.h>

namespace lockstep {
namespace {

int64_t ns_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

TEST(Clock, NumbersAreThoseOfTheKernelsClocks) {
  const int64_t before = ns_of(CLOCK_MONOTONIC);
  const int64_t monotonic = monotonic_ns();
  EXPECT_LE(before, monotonic);
  EXPECT_LE(monotonic, ns_of(CLOCK_MONOTONIC));
  const auto now = static_cast<double>(ns_of(CLOCK_REALTIME)) / 1e9;
  EXPECT_NEAR(seconds_since_1970(), now, 30);
  EXPECT_NEAR(static_cast<double>(ns_since_1970()) / 1e9, now, 30);
}

}  // namespace
}  // namespace lockstep
