// Samples that are drawn by weights.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "lockstep/distributed_sampler.h"
#include "lockstep/error.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using Drawn = std::vector<int64_t>;

// The expected values are those of WeightedRandomSampler of PyTorch 1.13.
TEST(WeightedOrder, DrawsTorchsSamples) {
  EXPECT_EQ(weighted_order({1, 2, 3, 4})(4, 0), (Drawn{3, 3, 2, 3}));
  EXPECT_EQ(weighted_order({0.1, 0, 0.7, 0.2, 0.5})(5, 1), (Drawn{0, 2, 2, 2, 3}));
  EXPECT_EQ(weighted_order({1, 0, 0, 2.5, 1e-3, 4, 0.25})(7, -1), (Drawn{5, 5, 5, 3, 5, 5, 5}));
  std::vector<double> one_is_larger(12, 1);
  one_is_larger[0] = 3;
  EXPECT_EQ(weighted_order(one_is_larger)(12, int64_t{1} << 31),
            (Drawn{2, 4, 1, 0, 8, 6, 5, 8, 0, 0, 5, 8}));
  EXPECT_EQ(weighted_order({0, 0, 5})(3, 3), (Drawn{2, 2, 2}));
  EXPECT_EQ(weighted_order({7})(1, 3), Drawn{0});

  std::vector<double> weights;
  for (int64_t i = 0; i < 50000; ++i) {
    weights.push_back(static_cast<double>(i * i % 97) + 0.25 * static_cast<double>(i % 3));
  }
  uint64_t sum = 0;
  for (const int64_t sample : weighted_order(weights)(50000, 5)) {
    sum = sum * 31 + static_cast<uint64_t>(sample);
  }
  EXPECT_EQ(sum, 0xd809cbbaec31f176U);
}

/// 90 samples of a class, then 10 of another.
std::vector<double> balanced() {
  std::vector<double> weights(90, 1.0 / 90);
  weights.resize(100, 1.0 / 10);
  return weights;
}

TEST(WeightedOrder, DrawsAsOftenAsTheWeightsHaveIt) {
  const auto order = weighted_order(balanced());
  std::vector<int> times(100);
  int64_t of_second = 0;
  for (int64_t epoch = 0; epoch < 100; ++epoch) {
    for (const int64_t sample : order(100, epoch)) {
      ++times.at(static_cast<size_t>(sample));
      if (sample >= 90) ++of_second;
    }
  }
  EXPECT_NEAR(static_cast<double>(of_second), 5000, 250) << "five standard deviations";
  for (size_t i = 0; i < 100; ++i) {
    const double expected = i < 90 ? 5000.0 / 90 : 500;
    EXPECT_NEAR(times[i], expected, i < 90 ? 45 : 120) << "sample " << i;
  }
}

TEST(WeightedOrder, DrawsNoSampleWithoutWeight) {
  std::vector<double> weights(1000, 0);
  weights[3] = 5e-324;
  EXPECT_EQ(weighted_order(weights)(1000, 0), Drawn(1000, 3));
  weights[999] = 5e-324;
  const auto drawn = weighted_order(weights)(1000, 0);
  EXPECT_NEAR(static_cast<double>(std::count(drawn.begin(), drawn.end(), 3)), 500, 80);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 3) + std::count(drawn.begin(), drawn.end(), 999),
            1000);
}

// Ranks join and leave in the middle: the draws of an epoch are one list.
TEST(WeightedOrder, IsOneListOnAnyNumberOfRanks) {
  const auto order = weighted_order(balanced());
  const Drawn list = order(100, 7);
  EXPECT_NE(list, order(100, 8));
  for (const int ranks : {1, 2, 3}) {
    for (const int64_t taken : {0, 31}) {
      Drawn all(static_cast<size_t>(100 - taken));
      for (int rank = 0; rank < ranks; ++rank) {
        DistributedSampler sampler(100, rank, ranks, {.seed = 5, .order = order});
        sampler.set_epoch(2);
        const auto own = sampler.indices(taken);
        for (size_t i = 0; i < own.size(); ++i) {
          const size_t place = i * static_cast<size_t>(ranks) + static_cast<size_t>(rank);
          if (place < all.size()) all[place] = own[i];
        }
      }
      EXPECT_EQ(all, Drawn(list.begin() + taken, list.end())) << ranks << " ranks, " << taken;
    }
  }
}

TEST(WeightedOrder, MistakesAreOneLine) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kMax = std::numeric_limits<double>::max();
  const auto fault = [](const std::vector<double>& weights) {
    const Error error = error_of([&] { weighted_order(weights); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  EXPECT_EQ(fault({1, 0, -0.5}), "weighted_order: weight 2 is -0.5, not a finite number from 0 on");
  EXPECT_EQ(fault({kNan, 1}), "weighted_order: weight 0 is nan, not a finite number from 0 on");
  EXPECT_EQ(fault({1, kInfinity}),
            "weighted_order: weight 1 is inf, not a finite number from 0 on");
  EXPECT_EQ(fault({0, 0}), "weighted_order: 2 weights add up to 0, not to a finite number above 0");
  EXPECT_EQ(fault({kMax, kMax}),
            "weighted_order: 2 weights add up to inf, not to a finite number above 0");
  EXPECT_EQ(fault({}), "weighted_order: 0 weights add up to 0, not to a finite number above 0");
  const DistributedSampler sampler(3, 0, 1, {.order = weighted_order({1, 1})});
  EXPECT_STREQ(error_of([&] { (void)sampler.indices(); }).what(),
               "weighted_order: 2 weights for 3 samples");
}

}  // namespace
}  // namespace lockstep
