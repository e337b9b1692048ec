#include "lockstep/store/tcp/spinning.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lockstep {
namespace {

/// Number of consecutive waits that are not worth it.
int waits_skipped(Spinning& spinning) {
  int count = 0;
  while (!spinning.worth_it()) ++count;
  return count;
}

TEST(Spinning, BeginsAfterAFewCallsAndGoesOnWhileItIsUseful) {
  Spinning spinning;
  EXPECT_GT(waits_skipped(spinning), 3);
  for (int i = 0; i < 100; ++i) {
    spinning.was_useful();
    EXPECT_EQ(waits_skipped(spinning), 0);
  }
}

TEST(Spinning, IsTriedMoreAndMoreSeldomWhileItIsVain) {
  Spinning spinning;
  waits_skipped(spinning);
  int skipped = 0;
  for (int i = 0; i < 20; ++i) {
    spinning.was_vain();
    const int now = waits_skipped(spinning);
    EXPECT_GE(now, skipped);
    skipped = now;
  }
  EXPECT_GT(skipped, 100);
  EXPECT_LT(skipped, 200);
  spinning.was_useful();
  EXPECT_EQ(waits_skipped(spinning), 0);
  spinning.was_vain();
  EXPECT_LT(waits_skipped(spinning), 3);
}

TEST(Spinning, LooksUntilThereIsSomethingThenSleeps) {
  Spinning spinning;
  waits_skipped(spinning);
  int looks = 0;
  constexpr std::chrono::seconds kLong{60};  // another process may take the core meanwhile
  const auto third_look = [&](int wait_ms) { return wait_ms == 0 && ++looks == 3; };
  EXPECT_EQ(poll_spinning(spinning, 50, third_look, kLong), 1);
  EXPECT_EQ(looks, 3);
  int sleeps = 0;
  EXPECT_EQ(poll_spinning(spinning, -1, [&](int wait_ms) { return wait_ms == -1 ? ++sleeps : 0; }),
            1);
  EXPECT_EQ(sleeps, 1);
  // A call that must not wait looks once.
  looks = 0;
  EXPECT_EQ(poll_spinning(spinning, 0, [&](int) { return ++looks > 1; }), 0);
  EXPECT_EQ(looks, 1);
}

}  // namespace
}  // namespace lockstep
