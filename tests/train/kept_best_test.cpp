#include "lockstep/train/callbacks/kept_best.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

/// Epochs of 10 steps, and an evaluation within the third.
const std::vector<MetricPoint> kHistory = {
    {1, 10, 0.125}, {2, 20, 0.4}, {2, 25, 0.0625}, {3, 30, 0.3}, {4, 40, 0.3}};

TEST(KeptBest, IsTheBestOfTheCheckpointsAndFilesThatAreThere) {
  EXPECT_EQ(best_kept(kHistory, {{10, 20, 25, 30, 40}, {}}, false), kHistory[2]);
  EXPECT_EQ(best_kept(kHistory, {{20, 40}, {}}, false), kHistory[4]);
  EXPECT_EQ(best_kept(kHistory, {{20, 40}, {1}}, false), kHistory[0]);
  EXPECT_EQ(best_kept(kHistory, {{}, {3}}, false), kHistory[3]);
  EXPECT_EQ(best_kept(kHistory, {{10, 30}, {4}}, true), kHistory[3]);
}

TEST(KeptBest, OfEqualsIsTheFirst) {
  EXPECT_EQ(best_kept(kHistory, {{30, 40}, {}}, false), kHistory[3]);
  EXPECT_EQ(best_kept(kHistory, {{40}, {3}}, false), kHistory[3]);
}

TEST(KeptBest, AFileHasTheWeightsOfItsEpochsEnd) {
  const KeptWeights kept{{}, {2}};
  EXPECT_TRUE(has_epoch_file(kHistory[1], kHistory, kept));
  EXPECT_FALSE(has_epoch_file(kHistory[2], kHistory, kept));
  EXPECT_EQ(best_kept(kHistory, kept, false), kHistory[1]);
}

TEST(KeptBest, WithoutWeightsOrAFiniteFigureThereIsNone) {
  EXPECT_EQ(best_kept(kHistory, {}, false), std::nullopt);
  EXPECT_EQ(best_kept(kHistory, {{15}, {5}}, false), std::nullopt);
  const std::vector<MetricPoint> no_numbers = {{1, 10, std::nan("")}, {2, 20, HUGE_VAL}};
  EXPECT_EQ(best_kept(no_numbers, {{10, 20}, {1, 2}}, true), std::nullopt);
}

}  // namespace
}  // namespace lockstep
