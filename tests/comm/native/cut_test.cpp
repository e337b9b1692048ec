#include "lockstep/comm/native/cut.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(WidestCut, IsThatOfTheRankThatWaitsForAllWhoWaitForIt) {
  const Cut cut = widest_cut({{1}, {0, 2}, {1}});
  EXPECT_EQ(cut.rank, 1);
  EXPECT_EQ(cut.from, (std::vector<int>{0, 2}));
}

// Rank 2 misses the sums that ranks 0 and 1 could not make.
TEST(WidestCut, WhoOnlyWaitsForTheOthersIsNoPartOfIt) {
  const Cut cut = widest_cut({{1}, {0}, {0, 1}});
  EXPECT_EQ(cut.rank, 0);
  EXPECT_EQ(cut.from, std::vector<int>{1});
}

TEST(WidestCut, NoneWhereNobodyWaitsForEachOther) {
  EXPECT_EQ(widest_cut({{1}, {2}, {}}).rank, -1);
  EXPECT_EQ(widest_cut({}).rank, -1);
}

TEST(WidestCut, RanksSurviveTheStore) {
  EXPECT_EQ(decode_ranks(encode_ranks({0, 12, 3})), (std::vector<int>{0, 12, 3}));
  EXPECT_TRUE(decode_ranks(encode_ranks({})).empty());
  EXPECT_TRUE(decode_ranks("nonsense").empty());
}

}  // namespace
}  // namespace lockstep
