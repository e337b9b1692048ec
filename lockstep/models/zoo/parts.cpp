#include "lockstep/models/zoo/parts.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/where.h>
#include <torch/nn/init.h>
#include <torch/utils.h>

#include <algorithm>

namespace lockstep::inline internal {
namespace {

namespace nn = torch::nn;

nn::Conv2d pointwise(int64_t in, int64_t out) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 1));
}

}  // namespace

at::Tensor activate(Activation activation, at::Tensor x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x.relu_();
    case Activation::kHardswish:
      return at::hardswish_(x);
    case Activation::kSilu:
      return at::silu_(x);
  }
  return x;
}

ConvNorm::ConvNorm(int64_t in, int64_t out, const ConvNormOptions& options)
    : activation_(options.activation),
      conv_(register_module("0", nn::Conv2d(nn::Conv2dOptions(in, out, options.kernel)
                                                .stride(options.stride)
                                                .padding(options.kernel / 2)
                                                .groups(options.groups)
                                                .bias(false)))),
      norm_(register_module(
          "1", nn::BatchNorm2d(
                   nn::BatchNorm2dOptions(out).eps(options.eps).momentum(options.momentum)))) {}

at::Tensor ConvNorm::forward(at::Tensor x) {
  return activate(activation_, norm_->forward(conv_->forward(x)));
}

SqueezeExcitation::SqueezeExcitation(int64_t channels, int64_t squeezed, Activation activation,
                                     Gate gate)
    : activation_(activation),
      gate_(gate),
      fc1_(register_module("fc1", pointwise(channels, squeezed))),
      fc2_(register_module("fc2", pointwise(squeezed, channels))) {}

at::Tensor SqueezeExcitation::forward(at::Tensor x) {
  const at::Tensor mean = at::adaptive_avg_pool2d(x, {1, 1});
  const at::Tensor scale = fc2_->forward(activate(activation_, fc1_->forward(mean)));
  return x * (gate_ == Gate::kSigmoid ? at::sigmoid(scale) : at::hardsigmoid(scale));
}

at::Tensor mean_of_pixels(const at::Tensor& x) {
  return at::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
}

at::Tensor drop_rows(const at::Tensor& x, double share, bool training) {
  if (!training || share == 0) return x;
  std::vector<int64_t> one_a_row(static_cast<size_t>(x.dim()), 1);
  one_a_row[0] = x.size(0);
  at::Tensor keeps = at::empty(one_a_row, x.options()).bernoulli_(1 - share);
  if (share < 1) keeps.div_(1 - share);
  return x * keeps;
}

int64_t rounded_channels(double channels) {
  constexpr int64_t kMultiple = 8;
  const auto nearest =
      std::max(kMultiple, static_cast<int64_t>(channels + kMultiple / 2) / kMultiple * kMultiple);
  return static_cast<double>(nearest) < 0.9 * channels ? nearest + kMultiple : nearest;
}

void init_convolutions(torch::nn::Module& net) {
  for (const auto& module : net.modules()) {
    if (auto* convolution = module->as<nn::Conv2dImpl>()) {
      nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
      if (convolution->bias.defined()) nn::init::zeros_(convolution->bias);
    } else if (auto* norm = module->as<nn::BatchNorm2dImpl>()) {
      nn::init::ones_(norm->weight);
      nn::init::zeros_(norm->bias);
    }
  }
}

void cut_normal_(const at::Tensor& values, double sigma) {
  constexpr double kBound = 2;
  const torch::NoGradGuard no_grad;
  values.normal_(0, sigma);
  for (at::Tensor beyond = values.abs() > kBound; beyond.any().item<bool>();
       beyond = values.abs() > kBound) {
    values.copy_(at::where(beyond, at::empty_like(values).normal_(0, sigma), values));
  }
}

}  // namespace lockstep::inline internal
