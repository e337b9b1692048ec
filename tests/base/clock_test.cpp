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

TEST(Clock, EstimatesTheTimeThatIsLeft) {
  using std::chrono::seconds;
  EXPECT_FALSE(estimate_left(0, 10, seconds(1)));
  EXPECT_EQ(estimate_left(10, 30, seconds(20)), seconds(60));
  EXPECT_EQ(estimate_left(10, 0, seconds(20)), seconds(0));
  EXPECT_EQ(estimate_left(1, INT64_MAX, seconds(20)), seconds(1'000'000'000'000));
}

}  // namespace
}  // namespace lockstep
