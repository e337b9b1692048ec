#include "lockstep/amp/master_weights.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <map>

#include "lockstep/autocast.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

nn::Sequential make_net() {
  torch::manual_seed(1);
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 4, 3)), nn::BatchNorm2d(4), nn::Flatten(),
                        nn::Linear(16, 2));
}

std::map<std::string, at::ScalarType> types_of(const nn::Module& module) {
  std::map<std::string, at::ScalarType> types;
  for (const auto& item : module.named_parameters()) types[item.key()] = item.value().scalar_type();
  for (const auto& item : module.named_buffers()) types[item.key()] = item.value().scalar_type();
  return types;
}

TEST(MasterWeights, LevelsSayWhatIsCast) {
  const auto cast = [](AmpLevel level) {
    auto net = make_net();
    cast_module(*net, level, at::kBFloat16);
    return types_of(*net);
  };
  const auto plain = types_of(*make_net());
  EXPECT_EQ(cast(AmpLevel::kO0), plain);
  EXPECT_EQ(cast(AmpLevel::kO1), plain);
  auto o2 = cast(AmpLevel::kO2), o3 = cast(AmpLevel::kO3);
  for (const auto* name : {"0.weight", "0.bias", "3.weight", "3.bias"}) {
    EXPECT_EQ(o2[name], at::kBFloat16) << name;
    EXPECT_EQ(o3[name], at::kBFloat16) << name;
  }
  for (const auto* name : {"1.weight", "1.bias", "1.running_mean", "1.running_var"}) {
    EXPECT_EQ(o2[name], at::kFloat) << name;
    EXPECT_EQ(o3[name], at::kBFloat16) << name;
  }
  EXPECT_EQ(o3["1.num_batches_tracked"], at::kLong);
}

TEST(MasterWeights, HoldTheNetsValuesUnderItsNames) {
  const auto before = make_net();
  for (const auto level : {AmpLevel::kO2, AmpLevel::kO3}) {
    auto net = make_net();
    MasterWeights masters(*net, level, at::kBFloat16);
    EXPECT_EQ(types_of(masters.module()), types_of(*before));
    const auto values = masters.module().named_parameters();
    for (const auto& item : before->named_parameters()) {
      EXPECT_TRUE(values[item.key()].equal(item.value())) << item.key();
      EXPECT_TRUE(values[item.key()].is_leaf() && values[item.key()].requires_grad());
    }
    const bool shared = level == AmpLevel::kO2;
    EXPECT_EQ(values["1.weight"].is_same(net->named_parameters()["1.weight"]), shared);
  }
}

/// Trains a net to output 1; returns the last loss of its masters' module.
float train(AmpLevel level, double lr, int steps) {
  auto net = make_net();
  MasterWeights masters(*net, level, at::kBFloat16);
  torch::optim::SGD optimizer(masters.module().parameters(), torch::optim::SGDOptions(lr));
  const Tensor x = torch::arange(4 * 3 * 16).reshape({4, 3, 4, 4}).to(at::kFloat).sin();
  Tensor loss;
  for (int step = 0; step < steps; ++step) {
    for (auto& parameter : net->parameters()) parameter.mutable_grad().reset();
    const Tensor out = forward_at(level, x, [&](const Tensor& in) { return net->forward(in); });
    loss = (out - 1).square().mean();
    loss.backward();
    masters.take_gradients();
    optimizer.step();
    masters.publish();
  }
  return loss.item<float>();
}

TEST(MasterWeights, TheNetLearns) {
  for (const auto level : {AmpLevel::kO2, AmpLevel::kO3}) {
    EXPECT_LT(train(level, 0.05, 40), train(level, 0.05, 1) / 10);
  }
}

// bfloat16 loses an update of 2^-12 of a weight; float32 accumulates many.
TEST(MasterWeights, SmallUpdatesAddUp) {
  nn::Linear net(nn::LinearOptions(1, 1).bias(false));
  {
    const at::NoGradGuard no_grad;
    net->weight.fill_(1);
  }
  MasterWeights masters(*net, AmpLevel::kO3, at::kBFloat16);
  torch::optim::SGD optimizer(masters.module().parameters(),
                              torch::optim::SGDOptions(std::ldexp(1, -12)));
  for (int step = 0; step < 256; ++step) {
    net->weight.mutable_grad() = torch::full({1, 1}, -1, at::kBFloat16);
    masters.take_gradients();
    optimizer.step();
    masters.publish();
  }
  EXPECT_EQ(masters.module().parameters()[0].item<float>(), 1 + 256.0F / 4096);
  EXPECT_EQ(net->weight.to(at::kFloat).item<float>(), 1 + 256.0F / 4096);
}

TEST(MasterWeights, GradientsComeAndGo) {
  auto net = make_net();
  MasterWeights masters(*net, AmpLevel::kO2, at::kBFloat16);
  const auto grad = [&] { return masters.module().named_parameters()["3.bias"].grad(); };
  net->named_parameters()["3.bias"].mutable_grad() = torch::full({2}, 0.1, at::kBFloat16);
  masters.take_gradients();
  EXPECT_EQ(grad().scalar_type(), at::kFloat);
  EXPECT_TRUE(grad().equal(torch::full({2}, 0.1, at::kBFloat16).to(at::kFloat)));
  net->named_parameters()["3.bias"].mutable_grad().reset();
  masters.take_gradients();
  EXPECT_FALSE(grad().defined()) << "a parameter without a gradient is not updated";
}

TEST(MasterWeights, BuffersAreCollectedAndFrozenWeightsAreNot) {
  auto net = make_net();
  net->named_parameters()["0.weight"].set_requires_grad(false);
  const Tensor frozen = net->named_parameters()["0.weight"].clone();
  MasterWeights masters(*net, AmpLevel::kO3, at::kBFloat16);
  net->forward(torch::ones({2, 3, 4, 4}, at::kBFloat16));
  masters.publish();
  masters.collect_buffers();
  const auto buffers = masters.module().named_buffers();
  EXPECT_TRUE(
      buffers["1.running_mean"].equal(net->named_buffers()["1.running_mean"].to(at::kFloat)));
  EXPECT_FALSE(buffers["1.running_mean"].equal(torch::zeros({4})));
  EXPECT_EQ(buffers["1.num_batches_tracked"].item<int64_t>(), 1);
  EXPECT_TRUE(masters.module().named_parameters()["0.weight"].equal(frozen));
  {
    const at::NoGradGuard no_grad;
    buffers["1.running_mean"].fill_(3);
  }
  masters.publish_all();
  EXPECT_EQ(net->named_buffers()["1.running_mean"].mean().item<float>(), 3);
}

TEST(MasterWeights, OneTensorOfTwoNamesIsOneMaster) {
  struct Tied : nn::Module {
    Tied() {
      first = register_module("first", nn::Linear(2, 2));
      second = register_module("second", nn::Linear(2, 2));
      second->weight = second->register_parameter("tied", first->weight);
    }
    nn::Linear first{nullptr}, second{nullptr};
  };
  Tied net;
  MasterWeights masters(net, AmpLevel::kO2, at::kBFloat16);
  const auto parameters = masters.module().named_parameters();
  EXPECT_TRUE(parameters["first.weight"].is_same(parameters["second.tied"]));
  EXPECT_FALSE(parameters["first.weight"].is_same(parameters["second.weight"]));
  {
    const at::NoGradGuard no_grad;
    parameters["first.weight"].fill_(3);
  }
  masters.publish();
  EXPECT_EQ(net.first->weight.mean().item<float>(), 3);
}

}  // namespace
}  // namespace lockstep
