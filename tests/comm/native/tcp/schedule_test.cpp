#include "lockstep/comm/native/tcp/schedule.h"

#include <gtest/gtest.h>

namespace lockstep::tcp {
namespace {

TEST(PartOf, TilesWithoutGapsAtMultiplesOf64) {
  for (const int64_t count : {0, 1, 63, 64, 65, 1000, 65537}) {
    for (const int parts : {1, 2, 3, 7, 64}) {
      const Span whole{100, 100 + count};
      int64_t next = whole.begin;
      for (int i = 0; i < parts; ++i) {
        const Span part = part_of(whole, i, parts);
        EXPECT_EQ(part.begin, next);
        EXPECT_TRUE(part.size() == 0 || (part.begin - whole.begin) % 64 == 0);
        EXPECT_LE(part.size(), count / parts + 128);
        next = part.end;
      }
      EXPECT_EQ(next, whole.end);
    }
  }
}

TEST(Rounds, CoverAllAndAreBounded) {
  for (const int64_t count : {1, 1000, 4 << 20, (4 << 20) + 1}) {
    const auto rounds = rounds_of(count, 8);
    int64_t next = 0;
    for (int64_t k = 0; k < rounds.size(); ++k) {
      EXPECT_EQ(rounds[k].begin, next);
      EXPECT_GT(rounds[k].size(), 0);
      EXPECT_LE(rounds[k].size() * 8, kRoundBytes);
      next = rounds[k].end;
    }
    EXPECT_EQ(next, count);
  }
}

TEST(Rounds, FlowingOnesGiveEachCarrierAPiece) {
  EXPECT_EQ(flowing_rounds_of(64 << 20, 4, 2, 1)[0].size() * 4, kPieceBytes * 2);
  EXPECT_EQ(flowing_rounds_of(64 << 20, 4, 3, 2)[0].size() * 4, kPieceBytes * 6);
  EXPECT_EQ(flowing_rounds_of(64 << 20, 4, 1000, 8)[0].size() * 4, kRoundBytes);
  EXPECT_EQ(flowing_rounds_of(0, 4, 2, 1).size(), 1);
}

TEST(Rounds, AnEmptyOperationHasOne) {
  const auto rounds = rounds_of(0, 4);
  EXPECT_EQ(rounds.size(), 1);
  EXPECT_EQ(rounds[0], (Span{0, 0}));
}

TEST(Rounds, AUnitLargerThanARoundTravelsAlone) {
  const auto rounds = rounds_of(3, kRoundBytes + 1);
  EXPECT_EQ(rounds.size(), 3);
  EXPECT_EQ(rounds[2], (Span{2, 3}));
}

TEST(Choose, SmallInOneStepByOneCarrier) {
  const auto small = choose(1024, 2, 8);
  EXPECT_TRUE(small.one_step);
  EXPECT_EQ(small.slices, 1);
  EXPECT_TRUE(choose(0, 1000, 1).one_step);
}

TEST(Choose, LargeInTwoStepsByAllCarriers) {
  const auto large = choose(64 << 20, 4, 8);
  EXPECT_FALSE(large.one_step);
  EXPECT_EQ(large.slices, 8);
}

TEST(Choose, MoreHostsLeaveOneStepEarlier) {
  EXPECT_TRUE(choose(32 << 10, 2, 1).one_step);
  EXPECT_FALSE(choose(32 << 10, 8, 1).one_step);
}

TEST(ChoosePairs, FewBytesBetweenAPowerOfTwo) {
  EXPECT_EQ(choose_pairs(0, 4), Pairs::kWhole);
  EXPECT_EQ(choose_pairs(32 << 10, 4), Pairs::kWhole);
  EXPECT_EQ(choose_pairs((32 << 10) + 1, 4), Pairs::kHalves);
  EXPECT_EQ(choose_pairs(32 << 10, 8), Pairs::kHalves);
  EXPECT_EQ(choose_pairs(kPairsBytes, 4), Pairs::kHalves);
  EXPECT_EQ(choose_pairs(kPairsBytes + 1, 4), Pairs::kNone);
  for (const int hosts : {2, 3, 5, 6, 12}) EXPECT_EQ(choose_pairs(4, hosts), Pairs::kNone);
}

TEST(ChoosePairs, RunInOneRound) {
  for (const int hosts : {4, 8, 64})
    EXPECT_EQ(flowing_rounds_of(kPairsBytes, 1, hosts, 1).size(), 1);
}

}  // namespace
}  // namespace lockstep::tcp
