#include "lockstep/comm/group/coalesced.h"

#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/error.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

TEST(PlanPacks, SmallNeighboursTravelTogetherAndLargeOnesAlone) {
  const int64_t counts[] = {10, 20, kPackedBelowBytes / 4, 30, 0, 40};
  EXPECT_EQ(plan_packs(counts, 4),
            (std::vector<Pack>{{0, 2, 30}, {2, 3, kPackedBelowBytes / 4}, {3, 6, 70}}));
  EXPECT_TRUE(plan_packs({}, 4).empty());
}

TEST(PlanPacks, NoPackIsLargerThanItsBound) {
  const std::vector<int64_t> counts(100, kPackedBelowBytes - 1);
  int64_t sum = 0;
  size_t next = 0;
  for (const Pack& pack : plan_packs(counts, 1)) {
    EXPECT_LE(pack.count, kPackBytes);
    EXPECT_EQ(pack.first, next);
    next = pack.last;
    sum += pack.count;
  }
  EXPECT_EQ(next, counts.size());
  EXPECT_EQ(sum, 100 * (kPackedBelowBytes - 1));
}

TEST(Coalesced, EmptyBuffersAloneAndAmongOthers) {
  testing::run_rank_threads(2, [](const World& world) {
    auto group = ProcessGroup::create(world);
    std::vector<float> large(kPackedBelowBytes / 4, 1);
    float small[2] = {1, 2};
    const std::vector<Buffer> buffers = {{nullptr, 0},
                                         {large.data(), kPackedBelowBytes / 4},
                                         {small, 1},
                                         {nullptr, 0},
                                         {small + 1, 1}};
    group.all_reduce_coalesced(buffers, DType::kFloat32, ReduceOp::kSum).wait();
    EXPECT_EQ(large.back(), 2);
    EXPECT_EQ(small[0], 2);
    EXPECT_EQ(small[1], 4);
  });
}

TEST(Coalesced, OtherBuffersAreAMismatchThatNamesTheRank) {
  testing::run_rank_threads(3, [](const World& world) {
    auto group = ProcessGroup::create(world);
    float data[10] = {};
    // The same number of elements on every rank, divided differently.
    const std::vector<Buffer> usual = {{data, 4}, {data + 4, 6}};
    const std::vector<Buffer> other = {{data, 5}, {data + 5, 5}};
    const Error error = error_of([&] {
      group.all_reduce_coalesced(world.rank == 2 ? other : usual, DType::kFloat32, ReduceOp::kSum)
          .wait();
    });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_NE(std::string(error.what()).find("rank 2 gave 2 buffers of 10"), std::string::npos)
        << error.what();
  });
}

TEST(Coalesced, OtherPairsAreAMismatchThatNamesTheCall) {
  testing::run_rank_threads(2, [](const World& world) {
    float data[30] = {};
    const int64_t count = 4 + world.rank;
    const BufferPair pairs[] = {{data, data + 10, count}};
    const auto says = [&](const Error& error, const std::string& text) {
      EXPECT_EQ(error.code(), ErrorCode::kMismatch);
      EXPECT_EQ(std::string(error.what()).find(text), 0) << error.what();
    };
    auto gathers = ProcessGroup::create(world);
    says(error_of([&] { gathers.all_gather_coalesced(pairs, DType::kFloat32).wait(); }),
         "all_gather_coalesced: rank 0 gave 1 buffers of 4");
    auto scatters = ProcessGroup::create(world);
    says(error_of([&] {
           scatters.reduce_scatter_coalesced(pairs, DType::kFloat32, ReduceOp::kSum).wait();
         }),
         "reduce_scatter_coalesced: rank 0 gave 1 buffers of 4");
  });
}

// Enough small ones to fill several packs.
TEST(Coalesced, AThousandSmallPairs) {
  constexpr int64_t kCount = 700;
  constexpr int kPairs = 1000;
  testing::run_rank_threads(2, [](const World& world) {
    auto group = ProcessGroup::create(world);
    std::vector<int32_t> parts(kPairs * kCount);
    std::vector<int32_t> all(2 * parts.size());
    std::iota(parts.begin(), parts.end(), world.rank);
    std::vector<BufferPair> gathers;
    std::vector<BufferPair> scatters;
    for (int i = 0; i < kPairs; ++i) {
      gathers.push_back({parts.data() + i * kCount, all.data() + 2 * i * kCount, kCount});
      scatters.push_back({all.data() + 2 * i * kCount, parts.data() + i * kCount, kCount});
    }
    group.all_gather_coalesced(gathers, DType::kInt32).wait();
    for (int64_t i = 0; i < 2 * kPairs * kCount; ++i) {
      const int64_t pair = i / (2 * kCount);
      const int64_t rank = i / kCount % 2;
      ASSERT_EQ(all[static_cast<size_t>(i)], pair * kCount + i % kCount + rank) << i;
    }
    group.reduce_scatter_coalesced(scatters, DType::kInt32, ReduceOp::kSum).wait();
    for (int64_t i = 0; i < kPairs * kCount; ++i) {
      ASSERT_EQ(parts[static_cast<size_t>(i)], 2 * (i + world.rank)) << i;
    }
  });
}

}  // namespace
}  // namespace lockstep
