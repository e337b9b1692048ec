#include "lockstep/comm/exchange.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Blocks = std::vector<ExchangeBlock>;

TEST(Exchange, GatherSendsToRootOnly) {
  const auto root = gather_exchange(1, 3, 5, DType::kFloat32, 1);
  EXPECT_EQ(root.sends, (Blocks{{0, 0}, {0, 5}, {0, 0}}));
  EXPECT_EQ(root.receives, (Blocks{{0, 5}, {5, 5}, {10, 5}}));
  const auto other = gather_exchange(0, 3, 5, DType::kFloat32, 1);
  EXPECT_EQ(other.sends, root.sends);
  EXPECT_EQ(other.out_count(), 0);
  EXPECT_EQ(other.in_count(), 5);
}

TEST(Exchange, ScatterIsTheReverse) {
  const auto root = scatter_exchange(0, 2, 5, DType::kFloat32, 0);
  EXPECT_EQ(root.sends, (Blocks{{0, 5}, {5, 5}}));
  EXPECT_EQ(root.receives, (Blocks{{0, 5}, {0, 0}}));
  EXPECT_EQ(root.bytes(), 60);
  EXPECT_EQ(scatter_exchange(1, 2, 5, DType::kFloat32, 0).in_count(), 0);
}

TEST(Exchange, UnevenBlocksLieOneAfterTheOther) {
  const int64_t counts[] = {3, 0, 4};
  const auto gathered = all_gatherv_exchange(2, counts, DType::kInt8);
  EXPECT_EQ(gathered.sends, (Blocks{{0, 4}, {0, 4}, {0, 4}}));
  EXPECT_EQ(gathered.receives, (Blocks{{0, 3}, {3, 0}, {3, 4}}));
  EXPECT_FALSE(gathered.even());
  const int64_t sends[] = {1, 2, 3};
  const auto exchanged = all_to_allv_exchange(sends, counts, DType::kInt8);
  EXPECT_EQ(exchanged.sends, (Blocks{{0, 1}, {1, 2}, {3, 3}}));
  EXPECT_EQ(exchanged.receives, gathered.receives);
}

TEST(Exchange, WhatEverySenderSendsIsWhatEveryReceiverExpects) {
  constexpr int kSize = 5;
  for (const int root : {0, 3}) {
    for (int from = 0; from < kSize; ++from) {
      for (int to = 0; to < kSize; ++to) {
        const auto block = [](const Blocks& blocks, int rank) {
          return blocks[static_cast<size_t>(rank)].count;
        };
        for (const auto make : {gather_exchange, scatter_exchange}) {
          EXPECT_EQ(block(make(from, kSize, 7, DType::kInt8, root).sends, to),
                    block(make(to, kSize, 7, DType::kInt8, root).receives, from));
        }
      }
    }
  }
}

TEST(Exchange, AmongSomeRanksKeepsTheirBlocks) {
  const auto all = all_to_all_exchange(0, 4, 2, DType::kInt32);
  const int ranks[] = {1, 3};
  const auto part = among(all, ranks);
  EXPECT_EQ(part.sends, (Blocks{{2, 2}, {6, 2}}));
  EXPECT_EQ(part.count, 2);
}

TEST(OutStream, HoldsEveryElementThatOthersNeedOnce) {
  // Rank 1 of three: its own block is not sent.
  const OutStream apart(Blocks{{0, 3}, {3, 5}, {8, 2}}, 1);
  EXPECT_EQ(apart.size(), 5);
  EXPECT_EQ(apart.position_of({0, 3}), 0);
  EXPECT_EQ(apart.position_of({8, 2}), 3);
  EXPECT_EQ(apart.parts(2, 5), (Blocks{{2, 1}, {8, 2}}));
  EXPECT_EQ(apart.parts(0, 2), (Blocks{{0, 2}}));
  // Elements that all ranks need are sent once.
  EXPECT_EQ(OutStream(Blocks{{0, 4}, {0, 4}, {0, 4}}, 0).size(), 4);
  EXPECT_EQ(OutStream(Blocks{{0, 4}, {0, 0}}, 0).size(), 0);
  // Overlapping ones, too.
  const OutStream overlapping(Blocks{{2, 4}, {0, 0}, {0, 4}}, 1);
  EXPECT_EQ(overlapping.size(), 6);
  EXPECT_EQ(overlapping.position_of({2, 4}), 2);
}

}  // namespace
}  // namespace lockstep
