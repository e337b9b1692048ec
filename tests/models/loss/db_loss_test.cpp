#include "lockstep/models/loss/db_loss.h"

#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"
#include "tests/models/gradcheck.h"

namespace lockstep {
namespace {

/// (1, 1, size) of doubles.
at::Tensor row(std::initializer_list<double> values) {
  return at::tensor(std::vector<double>(values), at::kDouble).view({1, 1, -1});
}

double value(const at::Tensor& loss) {
  return loss.item<double>();
}

TEST(DbLoss, DiceByHand) {
  // Inside the mask: p 0.5, 0.25, 1; g 1, 0, 1. 2 * 1.5 / (1.75 + 2 + 0.25) = 0.75.
  EXPECT_DOUBLE_EQ(
      value(dice_loss(row({0.5, 0.25, 1, 0.9}), row({1, 0, 1, 1}), row({1, 1, 1, 0}), 0.25)), 0.25);
}

TEST(DbLoss, DiceSumsOverTheBatch) {
  const auto p = at::cat({row({1, 1}), row({0.5, 0})}), g = at::cat({row({1, 1}), row({0, 0})});
  EXPECT_DOUBLE_EQ(value(dice_loss(p, g, at::ones_like(p), 0)), 1 - 2 * 2 / 4.5);
}

TEST(DbLoss, MaskedL1ByHand) {
  EXPECT_DOUBLE_EQ(
      value(masked_l1_loss(row({0.5, 0.25, 1}), row({0.75, 0.25, 0}), row({1, 1, 0}), 0.5)), 0.1);
  EXPECT_DOUBLE_EQ(value(masked_l1_loss(row({0.5}), row({0.75}), row({0}), 1e-6)), 0);
}

TEST(DbLoss, KeepsTheHardestNegativesOfEachImage) {
  // 4 positives of 0.5: k = 12 of 20 negatives; 12 of p = 0.75, 8 of p = 0.25.
  auto p = at::cat({at::full({4}, 0.5), at::full({12}, 0.75), at::full({8}, 0.25)}).to(at::kDouble);
  auto g = at::cat({at::ones({4}), at::zeros({20})}).to(at::kDouble);
  p = p.view({1, 1, 24});
  g = g.view({1, 1, 24});
  const double expected = (4 * std::log(2.0) + 12 * std::log(4.0)) / 16;
  EXPECT_NEAR(value(balanced_bce_loss(p, g, at::ones_like(p), 0)), expected, 1e-9);
}

TEST(DbLoss, EqualNegativesAreAllKeptButCountAsK) {
  // No positive: k = 10, but 30 pixels share the threshold.
  const auto p = at::full({1, 5, 6}, 0.5, at::kDouble);
  EXPECT_NEAR(value(balanced_bce_loss(p, at::zeros_like(p), at::ones_like(p), 0)),
              30 * std::log(2.0) / 10, 1e-9);
}

TEST(DbLoss, FewerPixelsThanKAreAllKept) {
  EXPECT_NEAR(value(balanced_bce_loss(row({0.5, 0.5}), row({0, 0}), row({1, 0}), 0)),
              std::log(2.0) / 10, 1e-9);
}

TEST(DbLoss, MapsThatAreSureAndWrongGiveAFiniteLoss) {
  auto p = row({0, 1}).set_requires_grad(true);
  const auto loss = balanced_bce_loss(p, row({1, 0}), row({1, 1}), 0);
  EXPECT_NEAR(value(loss), 2 * 12 * std::log(10.0) / 11, 1e-3);
  loss.backward();
  EXPECT_TRUE(p.grad().isfinite().all().item<bool>());
}

/// The definition, pixel by pixel.
double naive_bce(const at::Tensor& p, const at::Tensor& g, const at::Tensor& m, double eps) {
  double sum = 0, count = eps;
  for (int64_t image = 0; image < p.size(0); ++image) {
    std::vector<double> negatives;
    double positives = 0;
    const auto at = [&](const at::Tensor& map, int64_t i) {
      return map[image].flatten()[i].item<double>();
    };
    for (int64_t i = 0; i < p[image].numel(); ++i) {
      if (at(m, i) == 0) continue;
      if (at(g, i) == 0) {
        negatives.push_back(-std::log(1 - at(p, i)));
      } else {
        sum -= std::log(at(p, i));
        ++positives;
      }
    }
    std::sort(negatives.rbegin(), negatives.rend());
    const auto k =
        std::max<size_t>(std::min(negatives.size(), 3 * static_cast<size_t>(positives)), 10);
    for (size_t i = 0; i < negatives.size(); ++i) {
      if (i < k || negatives[i] == negatives[k - 1]) sum += negatives[i];
    }
    count += positives + static_cast<double>(k);
  }
  return sum / count;
}

TEST(DbLoss, BalancedCrossEntropyIsItsDefinition) {
  torch::manual_seed(1);
  const auto p = ((at::rand({4, 9, 11}, at::kDouble) * 16).floor() + 1) / 18;  // With ties.
  auto g = (at::rand({4, 9, 11}) < 0.15).to(at::kDouble);
  g[1].zero_();
  g[2].fill_(1);
  const auto m = (at::rand({4, 9, 11}) < 0.8).to(at::kDouble);
  EXPECT_NEAR(value(balanced_bce_loss(p, g, m, 1e-6)), naive_bce(p, g, m, 1e-6), 1e-9);
}

struct Batch {
  at::Tensor output;
  std::vector<at::Tensor> targets;
};

Batch random_batch() {
  torch::manual_seed(2);
  const auto mask = [](double part) { return (at::rand({2, 6, 7}) < part).to(at::kDouble); };
  return {at::rand({2, 3, 6, 7}, at::kDouble) * 0.9 + 0.05,
          {mask(0.2).unsqueeze(1), mask(0.9), at::rand({2, 6, 7}, at::kDouble), mask(0.4)}};
}

TEST(DbLoss, IsTheWeightedSumOfItsTerms) {
  const auto [output, targets] = random_batch();
  const auto g = targets[0].squeeze(1);
  const double dice = value(dice_loss(output.select(1, 2), g, targets[1], 1e-6));
  const double l1 = value(masked_l1_loss(output.select(1, 1), targets[2], targets[3], 1e-6));
  const double bce = value(balanced_bce_loss(output.select(1, 0), g, targets[1], 1e-6));
  const double of_binary = value(dice_loss(output.select(1, 0), g, targets[1], 1e-6));
  EXPECT_NEAR(value((*make_db_loss({}))(output, targets)), dice + 10 * l1 + 5 * bce, 1e-12);
  EXPECT_NEAR(value((*make_db_loss({.l1_scale = 2, .bce_scale = 3}))(output, targets)),
              dice + 2 * l1 + 3 * bce, 1e-12);
  EXPECT_NEAR(value((*make_db_loss({.dice_for_bce = true}))(output, targets)),
              dice + 10 * l1 + 5 * of_binary, 1e-12);
  EXPECT_NEAR(value((*make_db_loss({}))(output.narrow(1, 0, 1), targets)), bce, 1e-12);
}

TEST(DbLoss, ItsTermsAddUpToIt) {
  const auto [output, targets] = random_batch();
  const auto loss = make_db_loss({});
  const double sum = value((*loss)(output, targets));
  ASSERT_EQ(loss->terms().size(), loss->term_names().size());
  double of_terms = 0;
  for (const auto& term : loss->terms()) of_terms += value(term);
  EXPECT_NEAR(of_terms, sum, 1e-12);
  const double l1 = value(masked_l1_loss(output.select(1, 1), targets[2], targets[3], 1e-6));
  EXPECT_EQ(loss->term_names()[1], "loss_thresh");
  EXPECT_NEAR(value(loss->terms()[1]), 10 * l1, 1e-12);
  (*loss)(output.narrow(1, 0, 1), targets);
  EXPECT_TRUE(loss->terms().empty());
}
TEST(DbLoss, GradientsAreThoseOfTheFormula) {
  const auto [output, targets] = random_batch();
  for (const bool dice : {false, true}) {
    const auto loss = make_db_loss({.dice_for_bce = dice});
    expect_gradients([&](const auto& in) { return (*loss)(in[0], targets); }, {output});
  }
}

TEST(DbLoss, ComputesReducedPrecisionInFloat32) {
  const auto [output, targets] = random_batch();
  const auto loss = (*make_db_loss({}))(output.to(at::kBFloat16), targets);
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  EXPECT_NEAR(value(loss),
              value((*make_db_loss({}))(output.to(at::kBFloat16).to(at::kFloat), targets)), 1e-6);
}

TEST(DbLoss, RefusesOtherShapes) {
  auto [output, targets] = random_batch();
  const auto loss = make_db_loss({});
  EXPECT_THROW((*loss)(output.narrow(1, 0, 2), targets), Error);
  EXPECT_THROW((*loss)(output, std::span(targets).first(3)), Error);
  targets[1] = targets[1].unsqueeze(1);
  EXPECT_THROW((*loss)(output, targets), Error);
}

}  // namespace
}  // namespace lockstep
