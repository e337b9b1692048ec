#include "lockstep/parallel/buckets.h"

#include <gtest/gtest.h>

#include <numeric>

namespace lockstep {
namespace {

using Plan = std::vector<std::vector<int>>;
constexpr int kF16 = 0, kF32 = 1, kF64 = 2;

std::vector<GradientSpec> specs_of(const std::vector<std::pair<int, int64_t>>& tensors) {
  std::vector<GradientSpec> specs;
  for (const auto& [kind, elements] : tensors) specs.push_back({elements, 2 << kind, kind});
  return specs;
}

std::vector<GradientSpec> floats(const std::vector<int64_t>& elements) {
  std::vector<GradientSpec> specs;
  for (const int64_t count : elements) specs.push_back({count, 4, kF32});
  return specs;
}

Plan plan(const std::vector<GradientSpec>& specs, const std::vector<int64_t>& limits) {
  std::vector<int> order(specs.size());
  std::iota(order.begin(), order.end(), 0);
  return plan_buckets(specs, order, limits);
}

// The result of PyTorch's compute_bucket_assignment_by_size for the same tensors and limits.
TEST(PlanBuckets, GivesPyTorchsBuckets) {
  EXPECT_EQ(plan(floats({100, 200, 100, 50}), {400}), (Plan{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(plan(floats({100, 200, 100, 50}), {400, 800}), (Plan{{0}, {1}, {2, 3}}));
  EXPECT_EQ(plan(specs_of({{kF32, 100}, {kF64, 200}, {kF32, 100}, {kF64, 50}}), {200, 400}),
            (Plan{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(plan(floats({50, 25, 50, 25}), {400}), (Plan{{0, 1, 2}, {3}}));
  EXPECT_EQ(plan(floats({1000000, 10, 10}), bucket_limits(26214400)), (Plan{{0}, {1, 2}}));
  EXPECT_EQ(plan(floats({262144, 1, 6553600, 1, 1}), bucket_limits(26214400)),
            (Plan{{0}, {1, 2}, {3, 4}}));
  EXPECT_EQ(
      plan_buckets(floats({25, 50, 25, 50}), reversed_order(4), std::vector<int64_t>{200, 400}),
      (Plan{{3}, {2, 1, 0}}));
  EXPECT_EQ(plan(specs_of({{kF32, 5}, {kF16, 6}, {kF32, 7}}), {INT64_MAX}), (Plan{{0, 2}, {1}}));
}

TEST(PlanBuckets, FirstLimitIsOneMebibyteOrTheCap) {
  EXPECT_EQ(bucket_limits(26214400), (std::vector<int64_t>{1048576, 26214400}));
  EXPECT_EQ(bucket_limits(1000), (std::vector<int64_t>{1000, 1000}));
}

TEST(PlanBuckets, LargeGradientsMayTravelAlone) {
  const auto specs = floats({1, 100, 2, 100, 99, 3});
  EXPECT_EQ(plan_buckets(specs, reversed_order(6), std::vector<int64_t>{412}, 400),
            (Plan{{3}, {5, 4, 2}, {1}, {0}}));
}

TEST(LayOutBuckets, WholeBucketsLieInOnePiece) {
  const auto layouts = lay_out_buckets(floats({3, 400, 400}), {{0, 1}, {2}}, 1600, true);
  EXPECT_EQ(layouts[0].packed, (std::vector<int>{0, 1}));
  EXPECT_EQ(layouts[0].end, 1664);
  EXPECT_EQ(layouts[1].placed, (std::vector<int>{2}));
  EXPECT_EQ(layouts[1].begin, layouts[1].end);
}

TEST(LayOutBuckets, PacksSmallGradientsOnLinesOfTheirOwn) {
  const auto specs = floats({3, 17, 400, 1});
  const auto layouts = lay_out_buckets(specs, {{3, 2, 1}, {0}}, 1600);
  ASSERT_EQ(layouts.size(), 2u);
  EXPECT_EQ(layouts[0].packed, (std::vector<int>{3, 1}));
  EXPECT_EQ(layouts[0].offsets, (std::vector<int64_t>{0, 64}));
  EXPECT_EQ(layouts[0].placed, (std::vector<int>{2}));
  EXPECT_EQ(layouts[0].begin, 0);
  EXPECT_EQ(layouts[0].end, 192);
  EXPECT_EQ(layouts[1].packed, (std::vector<int>{0}));
  EXPECT_EQ(layouts[1].begin, 192);
  EXPECT_EQ(layouts[1].end, 256);
}

}  // namespace
}  // namespace lockstep
