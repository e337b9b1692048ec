#include "lockstep/comm/native/straggler_detection.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Ranks = std::vector<int>;

TEST(LateRanks, AreThoseThatDoNotSayForWhomTheyWait) {
  EXPECT_EQ(late_ranks({Ranks{1, 2}, std::nullopt, std::nullopt}), (Ranks{1, 2}));
  EXPECT_EQ(late_ranks({Ranks{1}, std::nullopt, Ranks{0}}), Ranks{1});
}

// Rank 2 is ahead, or only slow to report: no rank waits for its data.
TEST(LateRanks, AreAwaited) {
  EXPECT_EQ(late_ranks({Ranks{1}, std::nullopt, std::nullopt}), Ranks{1});
}

// A rank that timed out on its own host may not know which ranks the other hosts await.
TEST(LateRanks, AreAllTheSilentWhereNoneIsAwaited) {
  EXPECT_EQ(late_ranks({Ranks{}, std::nullopt, Ranks{0}}), Ranks{1});
  EXPECT_TRUE(late_ranks({Ranks{1}, Ranks{0}}).empty());
  EXPECT_TRUE(late_ranks({}).empty());
}

TEST(MostBrokenLinks, AreThoseOfTheRankThatWaitsForAllThatWaitForIt) {
  const BrokenLinks links = most_broken_links({Ranks{1}, Ranks{0, 2}, Ranks{1}});
  EXPECT_EQ(links.rank, 1);
  EXPECT_EQ(links.from, (std::vector<int>{0, 2}));
}

// Rank 2 misses the sums that ranks 0 and 1 could not compute.
TEST(MostBrokenLinks, LeaveOutARankThatOnlyWaitsForTheOthers) {
  const BrokenLinks links = most_broken_links({Ranks{1}, Ranks{0}, Ranks{0, 1}});
  EXPECT_EQ(links.rank, 0);
  EXPECT_EQ(links.from, std::vector<int>{1});
}

TEST(MostBrokenLinks, AreNoneIfNoTwoWaitForEachOther) {
  EXPECT_EQ(most_broken_links({Ranks{1}, Ranks{2}, Ranks{}}).rank, -1);
  EXPECT_EQ(most_broken_links({}).rank, -1);
}

TEST(LateRanks, SurviveTheStore) {
  EXPECT_EQ(decode_ranks(encode_ranks({0, 12, 3})), (std::vector<int>{0, 12, 3}));
  EXPECT_TRUE(decode_ranks(encode_ranks({})).empty());
  EXPECT_TRUE(decode_ranks("nonsense").empty());
}

}  // namespace
}  // namespace lockstep
