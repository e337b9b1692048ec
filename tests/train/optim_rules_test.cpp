// Optimizers against independent values: from PyTorch 1.13 in float64 if it has the rule, else from
// the formulas of rule_optimizer.h in plain scalars. (NAdam too: one of two implementations in
// PyTorch 1.13 applies mu twice.)

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <array>

#include "lockstep/checkpoint/optimizer_state.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/optim/parameter_groups.h"

namespace lockstep {
namespace {

struct TwoWeights : torch::nn::Module {
  TwoWeights() { w = register_parameter("w", at::tensor({0.5, -2.0}, at::kDouble).view({1, 2})); }
  at::Tensor w;
};

constexpr std::array<std::array<double, 2>, 3> kGradients = {
    {{0.1, -0.3}, {0.2, 0.4}, {-0.5, 0.05}}};

auto make_with_rate(const OptimizerConfig& config, const TwoWeights& net) {
  auto optimizer = make_optimizer(config, net);
  GroupRates(*optimizer, 1).set(0.1);
  return optimizer;
}

void step(torch::optim::Optimizer& optimizer, TwoWeights& net, size_t number) {
  const auto& grad = kGradients.at(number);
  net.w.mutable_grad() = at::tensor({grad[0], grad[1]}, at::kDouble).view({1, 2});
  optimizer.step();
}

struct RuleCase {
  const char* name;
  OptimizerConfig config;
  std::array<double, 2> expected;  ///< After the three gradients at learning rate 0.1.
};

OptimizerConfig rule(const std::string& opt) {
  OptimizerConfig config;
  config.opt = opt;
  config.weight_decay = 0.01;
  return config;
}

std::vector<RuleCase> rule_cases() {
  std::vector<RuleCase> cases = {
      {"lion", rule("lion"), {0.3988013995, -2.094105898}},
      {"adan", rule("adan"), {0.39326930273351257, -2.016597930463023}},
      {"rmsprop", rule("rmsprop"), {0.4890595405427355, -1.9966244072000916}},
      {"rmsprop_centered", rule("rmsprop"), {0.4890545997817942, -1.996582540223187}},
      {"lamb", rule("lamb"), {0.32491041295428646, -1.9951797103193911}},
      {"nadam", rule("nadam"), {0.39704512518934576, -1.978570558415717}},
      {"adagrad", rule("adagrad"), {0.49466465183203284, -1.998563870249327}},
      {"adamw", rule("adamw"), {0.33015729634958124, -1.9347823802259765}},
      {"adam", rule("adam"), {0.3298253023859061, -1.9286025059007839}},
  };
  cases[0].config.beta2 = 0.99;
  cases[1].config.beta1 = 0.98;
  cases[1].config.beta2 = 0.92;
  for (const size_t i : {2, 3}) {
    cases[i].config.momentum = 0.8;
    cases[i].config.eps = 1e-10;
  }
  cases[3].config.centered = true;
  cases[4].config.eps = 1e-6;
  cases[6].config.eps = 0;
  return cases;
}

class RuleTest : public ::testing::TestWithParam<RuleCase> {};

TEST_P(RuleTest, ThreeSteps) {
  TwoWeights net;
  const auto optimizer = make_with_rate(GetParam().config, net);
  for (size_t i = 0; i < kGradients.size(); ++i) step(*optimizer, net, i);
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(net.w[0][i].item<double>(), GetParam().expected.at(static_cast<size_t>(i)), 1e-12);
  }
  const auto tensors = optimizer_tensors(net, *optimizer);
  EXPECT_EQ(static_cast<int>(tensors.size()),
            state_copies(GetParam().config) + (tensors.count("w.step") > 0 ? 1 : 0));
}

TEST_P(RuleTest, GoesOnFromItsSavedState) {
  TwoWeights whole, resumed;
  const auto optimizer = make_with_rate(GetParam().config, whole);
  step(*optimizer, whole, 0);
  step(*optimizer, whole, 1);
  const auto fresh = make_with_rate(GetParam().config, resumed);
  resumed.w.detach().copy_(whole.w.detach());
  load_optimizer(resumed, *fresh, optimizer_tensors(whole, *optimizer), "f");
  step(*optimizer, whole, 2);
  step(*fresh, resumed, 2);
  EXPECT_TRUE(at::equal(whole.w, resumed.w));
}

INSTANTIATE_TEST_SUITE_P(All, RuleTest, ::testing::ValuesIn(rule_cases()),
                         [](const auto& row) { return row.param.name; });

const ParameterFacts kKernel{"backbone.conv1.weight", 4, false};
const ParameterFacts kBias{"head.dense1.bias", 1, false};
const ParameterFacts kScale{"backbone.bn1.weight", 1, true};
const ParameterFacts kShift{"backbone.bn1.bias", 1, true};

std::string decaying(const OptimizerConfig& config) {
  std::string who;
  for (const auto& [letter, parameter] :
       {std::pair{'k', kKernel}, {'b', kBias}, {'g', kScale}, {'s', kShift}}) {
    if (decays(config, parameter)) who += letter;
  }
  return who;
}

TEST(Decay, ExactKeysMeanWhatTheySay) {
  OptimizerConfig config;
  EXPECT_EQ(decaying(config), "k");
  config.filter_bias_and_bn = false;
  EXPECT_EQ(decaying(config), "kbgs");
  config.no_weight_decay_params = {"gamma", "bias"};
  EXPECT_EQ(decaying(config), "k");  // the shift is beta in MindSpore, and its name here has "bias"
  config.no_weight_decay_params = {"beta"};
  EXPECT_EQ(decaying(config), "kbg");
  config.grouping_strategy = "filter_norm_and_bias";
  EXPECT_EQ(decaying(config), "k");
  config.grouping_strategy = "svtr";
  EXPECT_EQ(decaying(config), "k");
  EXPECT_FALSE(decays(config, {"pos_embed", 3, false}));
}

// A group without its own value has the optimizer's.
TEST(Decay, AsMindsporeDoesIt) {
  OptimizerConfig config;
  config.exact_decay = false;
  config.opt = "adamw";
  EXPECT_EQ(decaying(config), "kbgs");
  config.filter_bias_and_bn = false;
  EXPECT_EQ(decaying(config), "kb");
  config.opt = "momentum";
  EXPECT_EQ(decaying(config), "kb");
  config.opt = "sgd";
  EXPECT_EQ(decaying(config), "kbgs");
  config.opt = "lion";
  config.no_weight_decay_params = {"beta", "gamma", "bias"};
  EXPECT_EQ(decaying(config), "kbgs");
}

}  // namespace
}  // namespace lockstep
