#include "lockstep/observe/rate_meter.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr RateMeter::Clock::time_point kStart{};

TEST(RateMeter, NothingYet) {
  RateMeter meter;
  EXPECT_EQ(meter.per_second(), 0);
  meter.start(kStart);
  EXPECT_EQ(meter.per_second(), 0);
  meter.add(5, kStart);
  EXPECT_EQ(meter.per_second(), 0) << "no time has passed";
}

TEST(RateMeter, AveragesSinceTheStart) {
  RateMeter meter;
  meter.start(kStart);
  meter.add(64, kStart + milliseconds(500));
  meter.add(64, kStart + milliseconds(1000));
  EXPECT_DOUBLE_EQ(meter.per_second(), 128);
}

TEST(RateMeter, ForgetsWhatLeftTheWindow) {
  RateMeter meter(seconds(2));
  meter.start(kStart);
  for (int i = 1; i <= 10; ++i) meter.add(100, kStart + seconds(i));
  for (int i = 11; i <= 20; ++i) meter.add(10, kStart + seconds(i));
  EXPECT_DOUBLE_EQ(meter.per_second(), 10);
}

TEST(RateMeter, AStepLongerThanTheWindowCounts) {
  RateMeter meter(seconds(2));
  meter.start(kStart);
  meter.add(100, kStart + seconds(10));
  EXPECT_DOUBLE_EQ(meter.per_second(), 10);
}

TEST(RateMeter, StartAgainLeavesAPauseOut) {
  RateMeter meter;
  meter.start(kStart);
  meter.add(100, kStart + seconds(1));
  meter.start(kStart + seconds(100));
  meter.add(50, kStart + seconds(101));
  EXPECT_DOUBLE_EQ(meter.per_second(), 50);
}

}  // namespace
}  // namespace lockstep
