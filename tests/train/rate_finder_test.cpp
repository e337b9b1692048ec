#include "lockstep/train/rate_finder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep {
namespace {

/// Losses that are lowest at 1e-1, and rise behind it.
std::vector<RatePoint> search_of(int steps) {
  std::vector<RatePoint> points;
  for (int i = 0; i < steps; ++i) {
    const double lr = rising_rate(static_cast<double>(i) / (steps - 1));
    const double x = std::log10(lr);
    const double risen = x > -1 ? std::pow(x + 1, 2) * 20 : 0;
    points.push_back({lr, 3 - 2 / (1 + std::exp(-4 * (x + 3))) + risen});
  }
  return points;
}

TEST(RateFinder, RatesRiseExponentially) {
  EXPECT_DOUBLE_EQ(rising_rate(0), 1e-7);
  EXPECT_DOUBLE_EQ(rising_rate(0.5), 1e-3);
  EXPECT_DOUBLE_EQ(rising_rate(1), 10);
  EXPECT_DOUBLE_EQ(rising_rate(2), 10);
}

TEST(RateFinder, SuggestsATenthOfTheRateOfTheLowestLoss) {
  const auto points = search_of(200);
  const auto rate = suggested_rate(points);
  ASSERT_TRUE(rate);
  // The moving mean lags some ten steps, which are 10^0.4 here.
  EXPECT_GT(*rate, 0.9e-2);
  EXPECT_LT(*rate, 1e-2 * std::pow(10, 0.8));
  const auto table = finder_table(points);
  EXPECT_NE(table.find("Suggestion: scheduler.lr="), std::string::npos) << table;
  EXPECT_NE(finder_table(points, 4).find(fmt::format("Suggestion: scheduler.lr={:.1e}", *rate / 4)),
            std::string::npos)
      << finder_table(points, 4);
  EXPECT_EQ(finder_chart(points).series.size(), 2U);
}

TEST(RateFinder, SuggestsNothingIfTheLossNeverFalls) {
  std::vector<RatePoint> points;
  for (int i = 0; i < 50; ++i) points.push_back({rising_rate(i / 49.0), 1 + i * 0.01});
  EXPECT_FALSE(suggested_rate(points));
  EXPECT_NE(finder_table(points).find("No suggestion: the loss did not fall"), std::string::npos);
  EXPECT_FALSE(suggested_rate({}));
}

TEST(RateFinder, ADroppedStepLeavesNoLossToTheNext) {
  StepLoss loss;
  EXPECT_FALSE(loss.add(1, StepEnd::kGoesOn));
  EXPECT_EQ(loss.add(2, StepEnd::kUpdated), 1.5);
  EXPECT_FALSE(loss.add(std::numeric_limits<double>::infinity(), StepEnd::kGoesOn));
  EXPECT_FALSE(loss.add(100, StepEnd::kDropped));
  EXPECT_FALSE(loss.add(3, StepEnd::kGoesOn));
  EXPECT_EQ(loss.add(5, StepEnd::kUpdated), 4);
}

TEST(RateFinder, MicroStepsCountByTheirItems) {
  StepLoss loss;
  EXPECT_FALSE(loss.add(1, StepEnd::kGoesOn, 6));
  EXPECT_FALSE(loss.add(0, StepEnd::kGoesOn, 0));
  EXPECT_EQ(loss.add(5, StepEnd::kUpdated, 2), 2);
  EXPECT_FALSE(loss.add(0, StepEnd::kUpdated, 0)) << "0 would be the lowest";
  EXPECT_EQ(loss.add(3, StepEnd::kUpdated, 4), 3);
}

TEST(RateFinder, EndsOnceTheLossHasDiverged) {
  const auto diverges = [](const std::vector<double>& losses) {
    SmoothedLoss smoothed;
    for (const double loss : losses) smoothed.add(loss);
    return smoothed.has_diverged();
  };
  EXPECT_FALSE(diverges({}));
  EXPECT_FALSE(diverges({1, 3}));
  std::vector<double> risen(21, 20);
  risen.front() = 1;
  EXPECT_TRUE(diverges(risen));
  EXPECT_TRUE(diverges({1, std::numeric_limits<double>::infinity()}));
}

TEST(RateFinder, SmoothsWithoutTheBiasOfTheBegin) {
  const auto losses = smoothed_losses({{1, 2}, {1, 2}, {1, 4}});
  EXPECT_DOUBLE_EQ(losses[0], 2);
  EXPECT_DOUBLE_EQ(losses[1], 2);
  EXPECT_DOUBLE_EQ(losses[2], 2 + 2 * 0.1 / (1 - 0.9 * 0.9 * 0.9));
}

}  // namespace
}  // namespace lockstep
