#include "lockstep/observe/rank_waits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

/// The waits of `rank`, where the ranks spent `own_s` outside collectives.
StepWaits split(const std::vector<double>& own_s, int rank, double together_s) {
  OwnTimes all{static_cast<int>(own_s.size()), 0, 0};
  for (int each = 0; each < all.ranks; ++each) {
    all.sum_s += own_s[static_cast<size_t>(each)];
    all.most = std::max(all.most, with_rank(own_s[static_cast<size_t>(each)], each));
  }
  return split_waits(all, own_s[static_cast<size_t>(rank)], rank, together_s);
}

TEST(SplitWaits, WhatAFastRankSpendsUntilTheSlowOneComesIsWaiting) {
  const std::vector<double> own = {0.10, 0.10, 0.40};
  const auto fast = split(own, 0, 0.32);
  EXPECT_EQ(fast.slowest, 2);
  EXPECT_NEAR(fast.waited_s, 0.30, 1e-9);
  EXPECT_NEAR(fast.moved_s, 0.02, 1e-9);
  EXPECT_EQ(fast.others_s, 0);
  const auto slow = split(own, 2, 0.02);
  EXPECT_EQ(slow.waited_s, 0);
  EXPECT_NEAR(slow.moved_s, 0.02, 1e-9);
  EXPECT_NEAR(slow.others_s, 0.30, 1e-9);
}

TEST(SplitWaits, NoMoreIsWaitingThanWasSpentInCollectives) {
  // The rest was spent before they met again, for example in an evaluation.
  const auto waits = split({0.1, 5.0}, 0, 0.2);
  EXPECT_EQ(waits.waited_s, 0.2);
  EXPECT_EQ(waits.moved_s, 0);
}

TEST(SplitWaits, AloneNothingIsWaiting) {
  const auto waits = split({0.5}, 0, 0.2);
  EXPECT_EQ(waits.slowest, -1);
  EXPECT_EQ(waits.waited_s, 0);
  EXPECT_EQ(waits.moved_s, 0.2);
}

TEST(SplitWaits, OfAHundredThousandRanksTheSlowestIsNamed) {
  std::vector<double> own(100'000, 0.2);
  own[99'998] = 0.200'002;
  EXPECT_EQ(split(own, 5, 1).slowest, 99'998);
  EXPECT_NEAR(split(own, 5, 1).waited_s, 2e-6, 1e-7);
  EXPECT_NEAR(split(own, 99'998, 1).others_s, 2e-6, 1e-7);
}

TEST(SplitWaits, OfEquallySlowRanksAllNameTheFirst) {
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(split({0.1, 0.7, 0.7}, rank, 1).slowest, 1);
    EXPECT_NEAR(split({0.1, 0.7, 0.7}, rank, 1).waited_s, rank == 0 ? 0.6 : 0, 1e-9);
  }
}

TEST(SplitWaits, ATimeBeyondAllMeasureStaysATime) {
  const auto waits = split({0.1, 1e9}, 0, 1e9);
  EXPECT_EQ(waits.slowest, 1);
  EXPECT_NEAR(waits.waited_s, 8589.8, 1);
  EXPECT_EQ(split({-1e-6, 0.0}, 0, 1).slowest, 0) << "a clock that two parts of the time share";
}

/// Steps of 1 s.
WaitSums sums(const std::vector<std::vector<double>>& own_of_steps, int rank, double moved_s) {
  WaitSums all;
  for (const auto& own : own_of_steps) {
    double most = 0;
    for (const double each : own) most = std::max(most, each);
    all.add(split(own, rank, most - own[static_cast<size_t>(rank)] + moved_s), 1);
  }
  return all;
}

TEST(WaitSums, NamesWhoIsWaitedForAndNotTheNetwork) {
  const auto all = sums({{0.42, 0.42, 0.96}, {0.42, 0.42, 0.96}}, 0, 0.02);
  EXPECT_EQ(all.text(), "waiting for rank 2: 54.0 %, communication: 2.0 %");
  EXPECT_EQ(all.note(), "waiting for rank 2: 54 %");
  const auto slow = sums({{0.42, 0.42, 0.96}, {0.42, 0.42, 0.96}}, 2, 0.02);
  EXPECT_EQ(slow.text(),
            "waiting for other ranks: 0.0 %, communication: 2.0 %, others waited for this rank: "
            "54.0 %");
  EXPECT_EQ(slow.note(), "others wait for rank 2: 54 %");
}

TEST(WaitSums, NamesNobodyWhereItIsNowThisOneAndNowThat) {
  const auto all = sums({{0.4, 0.6, 0.4}, {0.4, 0.4, 0.6}}, 0, 0.3);
  EXPECT_EQ(all.text(), "waiting for other ranks: 20.0 %, communication: 30.0 %");
  EXPECT_EQ(all.note(), "");
}

TEST(WaitSums, NamesNobodyForALittle) {
  const auto all = sums({{0.9, 0.94}, {0.9, 0.94}}, 0, 0.01);
  EXPECT_EQ(all.text(), "waiting for other ranks: 4.0 %, communication: 1.0 %");
  EXPECT_EQ(all.note(), "");
}

TEST(WaitSums, AloneThereIsNobodyToWaitFor) {
  WaitSums all;
  all.add(split({0}, 0, 0), 1);
  EXPECT_EQ(all.text(), "communication: 0.0 %");
  EXPECT_EQ(WaitSums().text(), "communication: 0.0 %");
}

TEST(WaitSums, WhatIsOverIsForgotten) {
  WaitSums recent = sums({{0.1, 0.9}}, 0, 0);
  EXPECT_EQ(recent.note(), "waiting for rank 1: 80 %");
  for (int step = 0; step < 100; ++step) {
    recent.fade(0.9);
    recent.add(split({0.5, 0.5}, 0, 0.01), 1);
  }
  EXPECT_EQ(recent.note(), "");
}

}  // namespace
}  // namespace lockstep
