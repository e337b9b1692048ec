#include "lockstep/autocast.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <thread>
#include <vector>

#include "lockstep/torch/torch_compat.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using torch::Tensor;

Tensor product() {
  return at::matmul(torch::ones({2, 2}), torch::ones({2, 2}));
}

TEST(Autocast, IsOnWhileItLivesInThisThreadAlone) {
  const auto dtype = torch_compat::autocast_type(at::kCPU);
  {
    const AutocastGuard guard(at::kCPU, at::kBFloat16);
    EXPECT_EQ(product().scalar_type(), at::kBFloat16);
    at::ScalarType elsewhere{};
    std::thread([&] { elsewhere = product().scalar_type(); }).join();
    EXPECT_EQ(elsewhere, at::kFloat);
    { const AutocastGuard inner(at::kCPU, at::kBFloat16); }
    EXPECT_EQ(product().scalar_type(), at::kBFloat16) << "the inner guard's end is not the outer's";
  }
  EXPECT_EQ(product().scalar_type(), at::kFloat);
  EXPECT_EQ(torch_compat::autocast_type(at::kCPU), dtype);
}

TEST(Autocast, EndsWithAnError) {
  const auto run = [] {
    const AutocastGuard guard(at::kCPU, at::kBFloat16);
    throw Error(ErrorCode::kInternal, "within");
  };
  EXPECT_EQ(std::string(error_of(run).what()), "within");
  EXPECT_EQ(product().scalar_type(), at::kFloat);
}

// libtorch caches the cast of a weight until the guard ends; after a step it must be cast again.
TEST(Autocast, SeesWeightsAsTheyAreNow) {
  torch::nn::Linear net(4, 1);
  const Tensor x = torch::ones({1, 4});
  const auto output = [&] {
    return forward_at(AmpLevel::kO1, x, [&](const Tensor& input) { return net(input); });
  };
  const Tensor before = output();
  {
    const at::NoGradGuard no_grad;
    net->weight.add_(1);
  }
  EXPECT_NEAR((output() - before).item<float>(), 4, 0.1);
}

TEST(Autocast, GradientsHaveTheParametersType) {
  torch::nn::Linear net(4, 3);
  at::ScalarType inside{};
  const Tensor out = forward_at(AmpLevel::kO1, torch::ones({2, 4}), [&](const Tensor& input) {
    const Tensor result = net(input);
    inside = result.scalar_type();
    return result;
  });
  EXPECT_EQ(inside, at::kBFloat16);
  EXPECT_EQ(out.scalar_type(), at::kFloat);
  EXPECT_EQ(product().scalar_type(), at::kFloat) << "in backward";
  out.sum().backward();
  EXPECT_EQ(net->weight.grad().scalar_type(), at::kFloat);
}

TEST(Autocast, LevelsO2AndO3CastWhatGoesInAndOut) {
  const auto identity = [](const Tensor& input) {
    EXPECT_EQ(input.scalar_type(), at::kBFloat16);
    EXPECT_EQ(product().scalar_type(), at::kFloat);
    return input;
  };
  for (const auto level : {AmpLevel::kO2, AmpLevel::kO3}) {
    EXPECT_EQ(forward_at(level, torch::ones({2}), identity).scalar_type(), at::kFloat);
  }
  const auto same = [](const Tensor& input) { return input; };
  const Tensor x = torch::ones({2});
  EXPECT_TRUE(forward_at(AmpLevel::kO0, x, same).is_same(x));
}

TEST(Autocast, WholeNumbersAreNotCast) {
  const auto indices = torch::arange(3);
  const auto same = [](const Tensor& input) { return input; };
  for (const auto level : {AmpLevel::kO1, AmpLevel::kO2}) {
    EXPECT_TRUE(forward_at(level, indices, same).is_same(indices));
  }
  const auto both = [](const std::vector<Tensor>& inputs) {
    EXPECT_EQ(inputs[0].scalar_type(), at::kBFloat16);
    EXPECT_EQ(inputs[1].scalar_type(), at::kLong);
    return std::vector<Tensor>{inputs[1], inputs[0]};
  };
  const auto outputs =
      forward_at(AmpLevel::kO2, std::vector<Tensor>{torch::ones({3}), indices}, both);
  EXPECT_TRUE(outputs[0].is_same(indices));
  EXPECT_EQ(outputs[1].scalar_type(), at::kFloat);
}

TEST(Autocast, TypeOfADevice) {
  EXPECT_EQ(low_precision(at::kCPU), at::kBFloat16);
  EXPECT_EQ(low_precision(at::kCUDA), at::kHalf);
  const auto error = error_of([] { low_precision(at::kXPU); });
  EXPECT_EQ(std::string(error.what()), "mixed precision is for cpu and cuda, not for xpu");
}

}  // namespace
}  // namespace lockstep
