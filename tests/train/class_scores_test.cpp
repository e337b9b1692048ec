#include "lockstep/train/task/class_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

RankFigures figures_of(const std::vector<std::pair<float, bool>>& samples) {
  std::vector<RankedSample> sorted;
  for (const auto& [score, present] : samples) sorted.push_back(ranked_sample(score, present));
  std::sort(sorted.begin(), sorted.end());
  return rank_figures(sorted);
}

TEST(RankFigures, ByHand) {
  const auto figures = figures_of({{0.9f, true}, {0.8f, false}, {0.7f, true}, {0.1f, false}});
  EXPECT_EQ(figures.auc, 3.0 / 4);  // of 4 pairs one is wrong
  EXPECT_DOUBLE_EQ(figures.average_precision, (1.0 + 2.0 / 3) / 2);
}

TEST(RankFigures, EqualScoresCountHalf) {
  const auto figures = figures_of({{1, true}, {1, false}, {1, false}, {0, false}});
  EXPECT_EQ(figures.auc, (0.5 + 0.5 + 1) / 3);
  EXPECT_DOUBLE_EQ(figures.average_precision, 1.0 / 3);
  EXPECT_EQ(figures_of({{0.0f, true}, {-0.0f, false}}).auc, 0.5);
}

TEST(RankFigures, NegativeInfiniteAndMissingScoresHaveAnOrder) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const float endless = std::numeric_limits<float>::infinity();
  const std::vector<float> ascending = {none, -endless, -2, -1e-30f, 0, 1e-30f, 3, endless};
  for (size_t i = 1; i < ascending.size(); ++i) {
    EXPECT_LT(ranked_sample(ascending[i - 1], true), ranked_sample(ascending[i], false)) << i;
  }
  EXPECT_EQ(ranked_sample(none, false), ranked_sample(-none, false));
}

TEST(RankFigures, AreUndefinedWithoutAPair) {
  EXPECT_TRUE(std::isnan(figures_of({{1, false}, {2, false}}).average_precision));
  EXPECT_TRUE(std::isnan(figures_of({{1, false}, {2, false}}).auc));
  const auto all = figures_of({{1, true}, {2, true}});
  EXPECT_TRUE(std::isnan(all.auc));
  EXPECT_EQ(all.average_precision, 1);
  EXPECT_TRUE(std::isnan(figures_of({}).auc));
}

}  // namespace
}  // namespace lockstep
