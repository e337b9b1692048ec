// The assignment of virtual ranks to ranks, and the order of their sums.
#include "lockstep/parallel/virtual_ranks.h"

#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

std::string tree_text(int lo, int hi) {
  if (hi - lo == 1) return std::to_string(lo);
  const int mid = tree_mid(lo, hi);
  return "(" + tree_text(lo, mid) + "+" + tree_text(mid, hi) + ")";
}

TEST(VirtualRanks, OfARankAreARunOfThem) {
  EXPECT_EQ(deal_virtual_ranks(8, 0, 1), (VirtualRankRange{0, 8, 8}));
  EXPECT_EQ(deal_virtual_ranks(8, 3, 4), (VirtualRankRange{6, 2, 8}));
  EXPECT_EQ(deal_virtual_ranks(3, 2, 3), (VirtualRankRange{2, 1, 3}));
  EXPECT_EQ(deal_virtual_ranks(8, 0, 3), (VirtualRankRange{0, 3, 8}));
  EXPECT_EQ(deal_virtual_ranks(8, 1, 3), (VirtualRankRange{3, 3, 8}));
  EXPECT_EQ(deal_virtual_ranks(8, 2, 3), (VirtualRankRange{6, 2, 8}));
}

TEST(VirtualRanks, AreDealtOnceEachAndAsEvenlyAsCanBe) {
  for (int virtual_ranks = 1; virtual_ranks <= 40; ++virtual_ranks) {
    for (int size = 1; size <= virtual_ranks; ++size) {
      int next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const auto range = deal_virtual_ranks(virtual_ranks, rank, size);
        EXPECT_EQ(range.first, next);
        EXPECT_EQ(range.total, virtual_ranks);
        EXPECT_GE(range.count, virtual_ranks / size);
        EXPECT_LE(range.count, (virtual_ranks + size - 1) / size);
        next += range.count;
      }
      EXPECT_EQ(next, virtual_ranks) << size;
    }
  }
}

TEST(VirtualRanks, RefusesMoreRanksThanThereAre) {
  const auto message = [](int virtual_ranks, int size) {
    const auto error = error_of([&] { deal_virtual_ranks(virtual_ranks, 0, size); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  EXPECT_EQ(message(6, 7),
            "7 ranks cannot share 6 virtual ranks: each needs at least one; start at most 6 ranks, "
            "or take more virtual ranks");
  EXPECT_EQ(message(1, 2),
            "2 ranks cannot share 1 virtual rank: each needs at least one; start at most 1 rank, "
            "or take more virtual ranks");
  EXPECT_EQ(message(0, 1), "0 virtual ranks; there must be at least 1");
  EXPECT_EQ(message(4, 0), "rank 0 of 0 ranks");
}

/// The sums of `range` after its last virtual rank, with texts in place of numbers.
std::vector<std::string> sums_of(const VirtualRankRange& range) {
  std::vector<std::string> sums;
  for (int index = 0; index < range.count; ++index) {
    std::string left = std::to_string(range.first + index);
    for (int n = sums_to_add(range, index); n > 0; --n) {
      left = "(" + sums.back() + "+" + left + ")";
      sums.pop_back();
    }
    sums.push_back(left);
  }
  return sums;
}

// First on each rank, then over the ranks.
TEST(VirtualRanks, SumsOfRanksAreSubtreesOfTheTreeOverThem) {
  for (int virtual_ranks = 1; virtual_ranks <= 24; ++virtual_ranks) {
    for (int size = 1; size <= virtual_ranks; ++size) {
      std::vector<std::string> values;
      for (int rank = 0; rank < size; ++rank) {
        const auto range = deal_virtual_ranks(virtual_ranks, rank, size);
        const auto sums = sums_of(range);
        const auto subtrees = owned_subtrees(range);
        ASSERT_EQ(sums.size(), subtrees.size());
        for (size_t i = 0; i < sums.size(); ++i) {
          EXPECT_EQ(sums[i], tree_text(subtrees[i].lo, subtrees[i].hi));
        }
        values.insert(values.end(), sums.begin(), sums.end());
      }
      for (const auto& add : tree_additions(all_subtrees(virtual_ranks, size), virtual_ranks)) {
        auto& left = values[static_cast<size_t>(add.left)];
        left = "(" + left + "+" + values[static_cast<size_t>(add.right)] + ")";
      }
      EXPECT_EQ(values[0], tree_text(0, virtual_ranks)) << size;
    }
  }
}

/// The sum over ranks, of which each has `values[rank]`, in the order of ProcessGroup.
std::string sum_of_ranks(const std::vector<std::string>& values, int lo, int hi) {
  if (hi - lo == 1) return values[static_cast<size_t>(lo)];
  const int mid = tree_mid(lo, hi);
  return "(" + sum_of_ranks(values, lo, mid) + "+" + sum_of_ranks(values, mid, hi) + ")";
}

TEST(VirtualRanks, RanksAddAsTheTreeWhereTheirSumsGiveItsText) {
  for (int virtual_ranks = 1; virtual_ranks <= 24; ++virtual_ranks) {
    for (int size = 1; size <= virtual_ranks; ++size) {
      std::vector<std::string> values;
      size_t subtrees = 0;
      for (int rank = 0; rank < size; ++rank) {
        const auto sums = sums_of(deal_virtual_ranks(virtual_ranks, rank, size));
        values.push_back(sums.back());
        subtrees += sums.size();
      }
      const bool same =
          subtrees == values.size() && sum_of_ranks(values, 0, size) == tree_text(0, virtual_ranks);
      EXPECT_EQ(ranks_add_as_tree(virtual_ranks, size), same) << virtual_ranks << " " << size;
      const int each = virtual_ranks / size;
      const bool even = virtual_ranks % size == 0 && (each & (each - 1)) == 0;
      EXPECT_TRUE(same || !(even || size == 1)) << virtual_ranks << " " << size;
    }
  }
  EXPECT_FALSE(ranks_add_as_tree(8, 3));
  EXPECT_FALSE(ranks_add_as_tree(6, 2));
}

TEST(VirtualRanks, TreeSumHasTheTreesOrder) {
  const std::vector<double> leaves = {1, 1e16, -1e16, 1, 1e-3, 3, 7};
  EXPECT_EQ(tree_sum(leaves), (((1 + 1e16) + (-1e16 + 1)) + ((1e-3 + 3) + 7)));
  EXPECT_EQ(tree_sum({}), 0);
}

TEST(VirtualRanks, BatchesLieInTurn) {
  EXPECT_EQ(lay_in_turn({{1, 2, 3}, {4, 5, 6}}, 2), (std::vector<int64_t>{1, 2, 4, 5, 3, 6}));
  EXPECT_EQ(lay_in_turn({{1, 2, 3}}, 2), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(lay_in_turn({{}, {}}, 2), std::vector<int64_t>{});
}

TEST(VirtualRanks, SeedsDifferByEachPartOfTheKey) {
  const auto drawn = [](uint64_t seed, int64_t step, int virtual_rank) {
    seed_virtual_rank(seed, step, virtual_rank);
    return at::rand({8});
  };
  const at::Tensor value = drawn(1, 2, 3);
  at::rand({5});
  EXPECT_TRUE(value.equal(drawn(1, 2, 3)));
  for (const at::Tensor& other : {drawn(2, 2, 3), drawn(1, 3, 3), drawn(1, 2, 4), drawn(1, 3, 2)}) {
    EXPECT_FALSE(value.equal(other));
  }
}

}  // namespace
}  // namespace lockstep
