// Steps on lists of tensors beside libtorch's own.
#include "lockstep/foreach_optimizers.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "lockstep/parallel/foreach_step.h"

namespace lockstep {
namespace {

namespace optim = torch::optim;
using Parameters = std::vector<at::Tensor>;

Parameters make_parameters() {
  torch::manual_seed(4);
  Parameters parameters = {at::randn({3, 5}), at::randn({7}), at::randn({2, 2, 2}).transpose(0, 2),
                           at::randn({1})};
  for (auto& parameter : parameters) parameter.set_requires_grad(true);
  return parameters;
}

/// Two groups with rates of their own, as layers of a network.
template <class Options>
std::vector<optim::OptimizerParamGroup> two_groups(const Parameters& parameters,
                                                   const Options& options) {
  std::vector<optim::OptimizerParamGroup> groups;
  groups.emplace_back(Parameters(parameters.begin(), parameters.begin() + 2),
                      std::make_unique<Options>(options));
  auto slower = std::make_unique<Options>(options);
  slower->set_lr(options.get_lr() / 3);
  groups.emplace_back(Parameters(parameters.begin() + 2, parameters.end()), std::move(slower));
  return groups;
}

/// Seven steps. The second parameter gets its first gradient in the third, and the last one none.
void train(const Parameters& parameters, const std::function<void()>& step) {
  torch::manual_seed(9);
  for (int i = 0; i < 7; ++i) {
    for (size_t p = 0; p + 1 < parameters.size(); ++p) {
      const at::Tensor gradient = at::randn(parameters[p].sizes());
      if (p != 1 || i >= 2) parameters[p].mutable_grad() = gradient;
    }
    step();
  }
}

/// `Optimizer`'s own step and foreach_step() lead to the same bits, and move every parameter that
/// has gradients.
template <class Optimizer, class Options>
void expect_equal_steps(const Options& options) {
  const Parameters own = make_parameters(), lists = make_parameters();
  Optimizer by_itself(two_groups(own, options), options);
  Optimizer by_lists(two_groups(lists, options), options);
  train(own, [&] { by_itself.step(); });
  train(lists, [&] { foreach_step(by_lists); });
  const Parameters before = make_parameters();
  for (size_t p = 0; p < own.size(); ++p) {
    EXPECT_TRUE(lists[p].equal(own[p])) << "parameter " << p;
    EXPECT_EQ(lists[p].equal(before[p]), p + 1 == own.size()) << "parameter " << p;
  }
  EXPECT_EQ(by_lists.state().size(), by_itself.state().size());
}

TEST(ForeachStep, SgdIsLibtorchs) {
  expect_equal_steps<optim::SGD>(optim::SGDOptions(0.1));
  expect_equal_steps<optim::SGD>(optim::SGDOptions(0.1).weight_decay(0.02));
  expect_equal_steps<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9));
  expect_equal_steps<optim::SGD>(
      optim::SGDOptions(0.1).momentum(0.9).dampening(0.3).weight_decay(0.02));
  expect_equal_steps<optim::SGD>(
      optim::SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.02));
}

TEST(ForeachStep, AdamIsLibtorchs) {
  expect_equal_steps<optim::Adam>(optim::AdamOptions(0.01));
  expect_equal_steps<optim::Adam>(
      optim::AdamOptions(0.01).betas({0.8, 0.95}).eps(1e-4).weight_decay(0.1));
}

TEST(ForeachStep, AdamWIsLibtorchs) {
  expect_equal_steps<optim::AdamW>(optim::AdamWOptions(0.01).weight_decay(0));
  expect_equal_steps<optim::AdamW>(optim::AdamWOptions(0.01).weight_decay(0.1));
}

/// The same weights whichever of the two steps comes first: both have one state.
TEST(ForeachStep, GoesOnFromTheStateOfTheOther) {
  const auto options = optim::AdamOptions(0.01);
  const Parameters own = make_parameters(), mixed = make_parameters();
  optim::Adam by_itself(own, options), changing(mixed, options);
  train(own, [&] { by_itself.step(); });
  int step = 0;
  train(mixed, [&] { ++step % 2 == 0 ? void(changing.step()) : foreach_step(changing); });
  for (size_t p = 0; p < own.size(); ++p) EXPECT_TRUE(mixed[p].equal(own[p])) << "parameter " << p;
}

TEST(ForeachOptimizers, AClosureIsCalledWithGradientsOnAndItsLossComesBack) {
  const Parameters parameters = make_parameters();
  ForeachSGD optimizer(parameters, optim::SGDOptions(0.5));
  const at::Tensor before = parameters[0].detach().clone();
  const at::NoGradGuard no_grad;
  const at::Tensor loss = optimizer.step([&] {
    at::Tensor sum = parameters[0].square().sum();
    sum.backward();
    return sum;
  });
  EXPECT_EQ(loss.item<float>(), before.square().sum().item<float>());
  EXPECT_TRUE(parameters[0].allclose(before.sub(before.mul(2), 0.5), 0, 1e-6));
}

template <class Ours, class Libtorchs, class Options>
void expect_bits_on_cpus(const Options& options) {
  const Parameters own = make_parameters(), ours = make_parameters();
  Libtorchs by_itself(two_groups(own, options), options);
  Ours quick(two_groups(ours, options), options);
  train(own, [&] { by_itself.step(); });
  train(ours, [&] { quick.step(); });
  for (size_t p = 0; p < own.size(); ++p) EXPECT_TRUE(ours[p].equal(own[p])) << "parameter " << p;
}

TEST(ForeachOptimizers, OnCpusTheyHaveTheBitsOfLibtorch) {
  expect_bits_on_cpus<ForeachSGD, optim::SGD>(optim::SGDOptions(0.1).momentum(0.9));
  expect_bits_on_cpus<ForeachAdam, optim::Adam>(optim::AdamOptions(0.01).amsgrad(true));
  expect_bits_on_cpus<ForeachAdamW, optim::AdamW>(optim::AdamWOptions(0.01));
}

}  // namespace
}  // namespace lockstep
