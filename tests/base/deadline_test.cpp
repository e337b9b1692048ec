#include "lockstep/deadline.h"

#include "lockstep/base/literals.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Deadline, LeftIsNeverNegative) {
  const auto past = Deadline::after(-5s);
  EXPECT_TRUE(past.passed());
  EXPECT_EQ(past.left(), 0ms);
  EXPECT_EQ(past.left_poll_ms(), 0);
}

TEST(Deadline, LeftRoundsUp) {
  // A microsecond must not become 0 ms, else a poll loop spins until it has passed.
  const auto soon = Deadline::at(Deadline::Clock::now() + 1h + 1us);
  EXPECT_GT(soon.left(), 1h - 1min);
  const auto now = Deadline::Clock::now();
  EXPECT_GE(now + Deadline::at(now + 10s).left(), now + 9s);
  EXPECT_FALSE(soon.passed());
}

TEST(Deadline, PollTimeFitsAnInt) {
  EXPECT_EQ(Deadline::after(24h * 365 * 10).left_poll_ms(), 1'000'000'000);
}

TEST(Deadline, AtMostTakesTheEarlier) {
  const auto whole = Deadline::after(1h);
  EXPECT_EQ(whole.at_most(2h).when(), whole.when());
  EXPECT_LT(whole.at_most(1s).when(), whole.when());
}

}  // namespace
}  // namespace lockstep
