#include "lockstep/train/ema.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>

#include <cmath>

#include "lockstep/error.h"
#include "lockstep/weights.h"

namespace lockstep {
namespace {

struct AveragedNet : torch::nn::Module {
  AveragedNet() : norm(1) { register_module("norm", norm); }
  void set(double value) {
    const at::NoGradGuard no_grad;
    norm->weight.fill_(value);
    norm->running_mean.fill_(-value);
  }
  double weight() const { return norm->weight.item<double>(); }
  double mean() const { return norm->running_mean.item<double>(); }
  torch::nn::BatchNorm1d norm;
};

TEST(Ema, GivesItsTensorsWithoutACopy) {
  AveragedNet net;
  net.set(1);
  Ema ema(net, 0.9);
  net.set(2);
  for (const bool swapped : {false, true}) {
    if (swapped) ema.swap();
    EXPECT_TRUE(ema.tensors().at("norm.weight").is_same(ema.tensors().at("norm.weight")));
    EXPECT_FALSE(ema.state().at("norm.weight").is_same(ema.tensors().at("norm.weight")));
    EXPECT_EQ(ema.tensors().at("norm.weight").item<double>(), 1);
    EXPECT_EQ(ema.state().at("norm.weight").item<double>(), 1);
  }
}

TEST(Ema, FollowsItsFormulaAndStatisticsToo) {
  AveragedNet net;
  net.set(1);
  Ema ema(net, 0.9);
  double average = 1;
  for (int n = 1; n <= 3; ++n) {
    net.set(1 + n);
    ema.update();
    const double d = 0.9 * (1 - std::exp(-n / 2000.0));
    average = d * average + (1 - d) * (1 + n);
  }
  EXPECT_EQ(ema.updates(), 3);
  EXPECT_EQ(net.weight(), 4);
  ema.swap();
  EXPECT_NEAR(net.weight(), average, 1e-6);
  EXPECT_NEAR(net.mean(), -average, 1e-6);
  EXPECT_THROW(ema.update(), Error);
  EXPECT_NEAR(ema.state().at("norm.weight").item<double>(), average, 1e-6);
  ema.swap();
  EXPECT_EQ(net.weight(), 4);
  EXPECT_NEAR(ema.state().at("norm.running_mean").item<double>(), -average, 1e-6);
}

TEST(Ema, AWeightOfTwoNamesHasOneAverage) {
  AveragedNet net;
  net.register_parameter("tied", net.norm->weight);
  net.set(1);
  Ema ema(net, 0.9);
  net.set(2);
  ema.swap();
  EXPECT_EQ(net.weight(), 1);
  ema.swap();
  EXPECT_EQ(net.weight(), 2);
  const auto state = ema.state();
  EXPECT_EQ(state.at("norm.weight").item<double>(), 1);
  EXPECT_EQ(state.at("tied").item<double>(), 1);
  Ema other(net, 0.9);
  other.load(state, "state");
  EXPECT_EQ(other.state().at("tied").item<double>(), 1);
}

TEST(Ema, WhatNeverChangesKeepsItsBits) {
  AveragedNet net;
  net.register_parameter("frozen", at::linspace(0.01, 1, 100), /*requires_grad=*/false);
  net.register_buffer("statistics", at::linspace(-1, 2, 100));
  net.register_buffer("mask", at::tensor({0.0F, -INFINITY}));  // of an attention
  Ema ema(net, 0.999);
  for (int n = 0; n < 300; ++n) {
    const at::NoGradGuard no_grad;
    net.norm->bias.add_(0.01);
    ema.update();
  }
  const auto state = ema.state();
  const auto now = module_tensors(net);
  for (const char* name : {"frozen", "statistics", "mask"}) {
    EXPECT_TRUE(state.at(name).equal(now.at(name))) << name << ": " << state.at(name);
  }
  EXPECT_FALSE(state.at("norm.bias").equal(now.at("norm.bias")));
}

TEST(Ema, StateGoesOn) {
  AveragedNet net;
  net.set(1);
  Ema ema(net, 0.5);
  net.set(3);
  ema.update();
  Ema other(net, 0.5);
  other.load(ema.state(), "f");
  net.set(5);
  ema.update();
  other.update();
  EXPECT_EQ(other.updates(), 2);
  for (const auto& [name, tensor] : ema.state()) {
    EXPECT_TRUE(at::equal(other.state().at(name), tensor)) << name;
  }
}

TEST(Ema, RefusesStatesOfOtherNetworks) {
  const AveragedNet net;
  Ema ema(net, 0.5);
  const auto fault = [&](TensorMap state) -> std::string {
    try {
      ema.load(state, "f");
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
      return error.what();
    }
  };
  TensorMap state = ema.state();
  state.erase("norm.weight");
  EXPECT_NE(fault(state).find("norm.weight"), std::string::npos);
  state["norm.weight"] = at::zeros({2});
  EXPECT_NE(fault(state).find("[2]"), std::string::npos);
  state = ema.state();
  state["more"] = at::zeros({1});
  EXPECT_NE(fault(state).find("more"), std::string::npos);
  EXPECT_EQ(fault(ema.state()), "");
}

}  // namespace
}  // namespace lockstep
