#include "lockstep/store/tcp/accept_pause.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lockstep {
namespace {

using namespace std::chrono_literals;

constexpr AcceptPause::Time kStart{1h};

TEST(AcceptPause, AShortageOfAMomentIsNone) {
  AcceptPause pause;
  EXPECT_FALSE(pause.begin(kStart));
  pause.end(/*client_waits=*/true);
  pause.accepted();
  EXPECT_FALSE(pause.begin(kStart + 101ms));
}

TEST(AcceptPause, AClientThatWaitsThroughAPauseMakesItLast) {
  AcceptPause pause;
  pause.begin(kStart);
  for (int i = 0; i < 2; ++i) {
    pause.end(/*client_waits=*/true);
    EXPECT_TRUE(pause.begin(kStart + 1s));
  }
}

// The last client took the last room, and the next comes right after the pause or long after.
TEST(AcceptPause, WithoutAClientThatWaitsNothingLasts) {
  AcceptPause pause;
  pause.begin(kStart);
  pause.end(/*client_waits=*/false);
  EXPECT_FALSE(pause.begin(kStart + 101ms));
}

TEST(AcceptPause, TellsWhenItIsOver) {
  AcceptPause pause;
  EXPECT_FALSE(pause.is_on());
  EXPECT_FALSE(pause.is_over(kStart));
  EXPECT_FALSE(pause.left(kStart));
  pause.begin(kStart);
  EXPECT_TRUE(pause.is_on());
  EXPECT_FALSE(pause.is_over(kStart + 99ms));
  EXPECT_TRUE(pause.is_over(kStart + 100ms));
  EXPECT_EQ(pause.left(kStart + 30ms), 70ms);
  EXPECT_EQ(pause.left(kStart + 1s), 0ms);
  pause.end(/*client_waits=*/false);
  EXPECT_FALSE(pause.is_on());
}

}  // namespace
}  // namespace lockstep
