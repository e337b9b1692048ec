#include "lockstep/ocr/data/order.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::ocr {
namespace {

TEST(SampledCount, RoundsHalvesToTheEvenNumber) {
  EXPECT_EQ(sampled_count(10, 1.0), 10);
  EXPECT_EQ(sampled_count(5, 0.5), 2);
  EXPECT_EQ(sampled_count(7, 0.5), 4);
  EXPECT_EQ(sampled_count(1000, 0.001), 1);
  EXPECT_EQ(sampled_count(10, 0.0), 0);
}

TEST(Shuffled, IsAPermutationOfItsOwnForSeedAndStream) {
  auto order = shuffled(100, 1, 0);
  EXPECT_EQ(order, shuffled(100, 1, 0));
  EXPECT_NE(order, shuffled(100, 2, 0));
  EXPECT_NE(order, shuffled(100, 1, 1));
  std::sort(order.begin(), order.end());
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  EXPECT_TRUE(shuffled(0, 1, 0).empty());
}

}  // namespace
}  // namespace lockstep::ocr
