#include "lockstep/data/pictures/buffer_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

using Samples = std::vector<int64_t>;

Samples sorted(Samples order) {
  std::sort(order.begin(), order.end());
  return order;
}

Samples counted(int64_t n) {
  Samples all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(BufferOrder, HasEverySampleOnce) {
  for (const Samples& firsts : {Samples{0}, Samples{0, 1}, Samples{0, 30, 31, 70}}) {
    for (const int64_t n : {71, 200}) {
      for (const int64_t buffer : {1, 2, 17, 71, 5000}) {
        for (const int64_t seed : {int64_t{0}, int64_t{-3}, int64_t{1} << 40}) {
          EXPECT_EQ(sorted(buffer_order(firsts, n, buffer, seed)), counted(n)) << buffer;
        }
      }
    }
  }
  EXPECT_EQ(buffer_order({}, 0, 8, 1), Samples{});
  EXPECT_EQ(buffer_order(Samples{0}, 1, 8, 1), Samples{0});
}

TEST(BufferOrder, OfOneIsSequentialWithinShards) {
  const Samples firsts = {0, 40, 40, 55, 90};
  std::vector<Samples> seen;
  for (int64_t seed = 0; seed < 40; ++seed) {
    const Samples order = buffer_order(firsts, 100, 1, seed);
    Samples begun;
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || order[i] != order[i - 1] + 1) begun.push_back(order[i]);
    }
    // Shards that are neighbours may follow one another in their order.
    for (const int64_t first : begun) {
      EXPECT_TRUE(std::find(firsts.begin(), firsts.end(), first) != firsts.end()) << first;
    }
    EXPECT_EQ(sorted(order), counted(100));
    if (std::find(seen.begin(), seen.end(), order) == seen.end()) seen.push_back(order);
  }
  EXPECT_GT(seen.size(), 10U) << "of the 24 orders of four shards";
}

TEST(BufferOrder, DependsOnSeedAndBuffer) {
  const Samples firsts = {0, 10, 20};
  const Samples order = buffer_order(firsts, 30, 7, 5);
  EXPECT_EQ(buffer_order(firsts, 30, 7, 5), order);
  EXPECT_NE(buffer_order(firsts, 30, 7, 6), order);
  EXPECT_NE(buffer_order(firsts, 30, 8, 5), order);
}

// One shard, so a sample's turn is its number.
TEST(BufferOrder, MovesASampleByAboutTheBuffer) {
  constexpr int64_t kSize = 20'000, kBuffer = 100;
  const Samples order = buffer_order(Samples{0}, kSize, kBuffer, 3);
  int64_t earliest = 0, late = 0;
  for (int64_t place = 0; place < kSize; ++place) {
    const int64_t moved = place - order[static_cast<size_t>(place)];
    earliest = std::min(earliest, moved);
    late += moved > 4 * kBuffer ? 1 : 0;
  }
  EXPECT_EQ(earliest, 1 - kBuffer);
  EXPECT_NEAR(static_cast<double>(late) / kSize, 1.0 / 148, 0.003);
}

// Each of the first places of a buffer that holds all is taken by each sample about as often.
TEST(BufferOrder, OfAllSamplesGivesAllOrdersAlike) {
  constexpr int kRuns = 6000;
  std::vector<std::vector<int>> counts(4, std::vector<int>(4));
  for (int seed = 0; seed < kRuns; ++seed) {
    const Samples order = buffer_order(Samples{0, 1}, 4, 4, seed);
    for (size_t place = 0; place < 4; ++place) ++counts[place][static_cast<size_t>(order[place])];
  }
  for (const auto& of_place : counts) {
    for (const int count : of_place) EXPECT_NEAR(count, kRuns / 4, 150);
  }
}

}  // namespace
}  // namespace lockstep
