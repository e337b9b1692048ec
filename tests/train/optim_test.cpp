#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "lockstep/error.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/task/classification.h"

namespace lockstep {
namespace {

struct Net : torch::nn::Module {
  Net() {
    register_module("fc", torch::nn::Linear(3, 2));
    register_module("bn", torch::nn::BatchNorm1d(2));
  }
};

TEST(Optimizer, GroupsHoldEveryParameterOnce) {
  const Net net;
  OptimizerConfig config;
  config.opt = "sgd";
  config.weight_decay = 0.5;
  const auto optimizer = make_optimizer(config, net);
  ASSERT_EQ(optimizer->param_groups().size(), 2u);
  EXPECT_EQ(optimizer->param_groups()[0].params().size(), 1u);
  EXPECT_EQ(optimizer->param_groups()[1].params().size(), 3u);
  const auto decay = [&](size_t group) {
    return static_cast<torch::optim::SGDOptions&>(optimizer->param_groups()[group].options())
        .weight_decay();
  };
  EXPECT_EQ(decay(0), 0.5);
  EXPECT_EQ(decay(1), 0);
}

// By hand: v = g + wd * p; with Nesterov the first step is p - lr * (v + momentum * v).
TEST(Optimizer, NesterovStep) {
  const Net net;
  OptimizerConfig config;
  config.opt = "nesterov";
  config.nesterov = true;
  config.weight_decay = 0.1;
  const auto optimizer = make_optimizer(config, net);
  auto weight = net.named_parameters()["fc.weight"];
  const auto before = weight.detach().clone();
  weight.mutable_grad() = torch::ones_like(weight);
  GroupRates(*optimizer, 1).set(0.01);
  optimizer->step();
  EXPECT_TRUE(weight.allclose(before - 0.01 * 1.9 * (1 + 0.1 * before), 1e-6, 1e-7));
}

TEST(Optimizer, AdamFirstStepIsTheLearningRate) {
  for (const auto* name : {"adam", "adamw"}) {
    const Net net;
    OptimizerConfig config;
    config.opt = name;
    const auto optimizer = make_optimizer(config, net);
    auto weight = net.named_parameters()["fc.weight"];
    const auto before = weight.detach().clone();
    weight.mutable_grad() = torch::full_like(weight, 3);
    GroupRates(*optimizer, 1).set(0.01);
    optimizer->step();
    EXPECT_TRUE(weight.allclose(before - 0.01, 1e-5, 1e-6)) << name;
  }
}

TEST(GroupRates, ScaleWhatEachGroupHadAndSetWhatHadNone) {
  const Net net;
  using torch::optim::SGDOptions;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const double lr : {0.1, 0.01, 0.0}) {
    groups.emplace_back(std::vector<at::Tensor>{torch::zeros({1}, torch::requires_grad())},
                        std::make_unique<SGDOptions>(lr));
  }
  torch::optim::SGD optimizer(groups, SGDOptions(0.5));
  GroupRates rates(optimizer, 0.2);
  for (const double lr : {0.2, 0.1}) {
    rates.set(lr);
    EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].options().get_lr(), lr / 2);
    EXPECT_DOUBLE_EQ(optimizer.param_groups()[1].options().get_lr(), lr / 20);
    EXPECT_EQ(optimizer.param_groups()[2].options().get_lr(), lr);
  }
  EXPECT_THROW(GroupRates(optimizer, 0), Error);
}

TEST(Clip, ScalesToTheGlobalNorm) {
  auto a = torch::zeros({2}, torch::requires_grad());
  auto b = torch::zeros({1}, torch::requires_grad());
  auto none = torch::zeros({1}, torch::requires_grad());
  a.mutable_grad() = torch::tensor({3.0f, 0.0f});
  b.mutable_grad() = torch::tensor({4.0f});
  const std::vector<at::Tensor> all = {a, b, none};
  EXPECT_DOUBLE_EQ(clip_gradients(all, 10), 5);
  EXPECT_EQ(b.grad().item<float>(), 4.0f);
  EXPECT_DOUBLE_EQ(clip_gradients(all, 1), 5);
  EXPECT_NEAR(a.grad()[0].item<float>(), 0.6, 1e-6);
  EXPECT_NEAR(b.grad().item<float>(), 0.8, 1e-6);
}

TEST(Loss, LabelSmoothingByItsFormula) {
  const auto logits = torch::tensor({{1.0f, 2.0f, 4.0f}, {0.5f, 0.0f, -1.0f}});
  const auto labels = torch::tensor({2, 1});
  const auto log_p = torch::log_softmax(logits, 1);
  const double plain = -(log_p[0][2] + log_p[1][1]).item<double>() / 2;
  EXPECT_NEAR(classification_loss(logits, labels, {}).item<double>(), plain, 1e-6);
  const double smooth = 0.9 * plain - 0.1 / 3 * log_p.sum().item<double>() / 2;
  EXPECT_NEAR(
      classification_loss(logits, labels, CrossEntropyConfig{.smoothing = 0.1}).item<double>(),
      smooth, 1e-6);
}

TEST(Loss, SharesOfClassesByTheirFormula) {
  const auto logits = torch::tensor({{1.0f, 2.0f, 4.0f}, {0.5f, 0.0f, -1.0f}});
  const auto shares = torch::tensor({{0.25f, 0.0f, 0.75f}, {0.0f, 1.0f, 0.0f}});
  const auto log_p = torch::log_softmax(logits, 1);
  const double plain = -(shares * log_p).sum().item<double>() / 2;
  EXPECT_NEAR(classification_loss(logits, shares, {}).item<double>(), plain, 1e-6);
  const double smooth = 0.9 * plain - 0.1 / 3 * log_p.sum().item<double>() / 2;
  EXPECT_NEAR(
      classification_loss(logits, shares, CrossEntropyConfig{.smoothing = 0.1}).item<double>(),
      smooth, 1e-6);
  const auto hard = torch::tensor({{0.0f, 0.0f, 1.0f}, {0.0f, 1.0f, 0.0f}});
  EXPECT_NEAR(classification_loss(logits, hard, {}).item<double>(),
              classification_loss(logits, torch::tensor({2, 1}), {}).item<double>(), 1e-6);
}

TEST(EvalSums, CountsBestAndFiveBestOfValidRows) {
  auto logits = torch::zeros({3, 7});
  logits[0][3] = 1;                                                         // right
  for (int k = 0; k < 5; ++k) logits[1][k] = 5.0f - static_cast<float>(k);  // fifth best
  ClassificationTask task(cross_entropy({}), 7);
  Batch batch;
  batch.targets = {torch::tensor({3, 4, 0})};
  batch.valid = 2;
  const auto result = task.result(task.sums({logits}, batch));
  EXPECT_EQ(result.samples, 2);
  EXPECT_EQ(result.metric("acc"), 0.5);
  EXPECT_EQ(result.metric("top_5"), 1);
}

}  // namespace
}  // namespace lockstep
