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
  EXPECT_FALSE(pause.ends(kStart + 99ms));
  EXPECT_TRUE(pause.ends(kStart + 100ms));
  pause.accepted();
  EXPECT_FALSE(pause.begin(kStart + 101ms));
}

TEST(AcceptPause, AClientThatWaitsThroughAPauseMakesItLast) {
  AcceptPause pause;
  pause.begin(kStart);
  EXPECT_TRUE(pause.ends(kStart + 100ms));
  EXPECT_TRUE(pause.begin(kStart + 101ms));
  EXPECT_TRUE(pause.ends(kStart + 201ms));
  EXPECT_TRUE(pause.begin(kStart + 202ms));
}

// The last client took the last descriptor, and the next comes long after.
TEST(AcceptPause, WithoutAClientThatWaitsNothingLasts) {
  AcceptPause pause;
  pause.begin(kStart);
  EXPECT_TRUE(pause.ends(kStart + 100ms));
  EXPECT_FALSE(pause.begin(kStart + 10s));
}

TEST(AcceptPause, EndsOnceAndTellsWhen) {
  AcceptPause pause;
  EXPECT_FALSE(pause.is_on());
  EXPECT_FALSE(pause.ends(kStart));
  EXPECT_FALSE(pause.left(kStart));
  pause.begin(kStart);
  EXPECT_TRUE(pause.is_on());
  EXPECT_EQ(pause.left(kStart + 30ms), 70ms);
  EXPECT_EQ(pause.left(kStart + 1s), 0ms);
  EXPECT_TRUE(pause.ends(kStart + 1s));
  EXPECT_FALSE(pause.ends(kStart + 1s));
  EXPECT_FALSE(pause.is_on());
}

}  // namespace
}  // namespace lockstep
