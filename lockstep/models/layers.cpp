#include "lockstep/models/layers.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/max_pool2d.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/rounding.h"

namespace lockstep::inline internal {
namespace {

std::array<Padding, 2> same_paddings(const at::Tensor& x, Pair kernel, Pair stride) {
  return {same_padding(x.size(2), kernel[0], stride[0]),
          same_padding(x.size(3), kernel[1], stride[1])};
}

namespace nn = torch::nn;

class Squeeze final : public Model {
 public:
  explicit Squeeze(int64_t channels)
      : conv1_(register_module("conv1", nn::Conv2d(channels, channels / 4, 1))),
        conv2_(register_module("conv2", nn::Conv2d(channels / 4, channels, 1))) {}

  at::Tensor forward(at::Tensor x) override {
    const at::Tensor mean = x.mean({2, 3}, /*keepdim=*/true);
    return x * at::hardsigmoid(conv2_->forward(conv1_->forward(mean).relu_()));
  }

 private:
  nn::Conv2d conv1_;
  nn::Conv2d conv2_;
};

}  // namespace

Padding same_padding(int64_t size, int64_t kernel, int64_t stride) {
  const int64_t outputs = divide_up(size, stride);
  const int64_t total = std::max<int64_t>((outputs - 1) * stride + kernel - size, 0);
  return {total / 2, total - total / 2};
}

// With ceil_mode a last window may reach beyond the padding: it covers the one more element behind.
at::Tensor max_pool_same(const at::Tensor& x, Pair kernel, Pair stride) {
  const auto [rows, columns] = same_paddings(x, kernel, stride);
  return at::max_pool2d(x, kernel, stride, {rows.before, columns.before}, 1, /*ceil_mode=*/true);
}

at::Tensor avg_pool_same(const at::Tensor& x, Pair kernel, Pair stride) {
  const auto [rows, columns] = same_paddings(x, kernel, stride);
  return at::avg_pool2d(x, kernel, stride, {rows.before, columns.before}, /*ceil_mode=*/true,
                        /*count_include_pad=*/false);
}

at::Tensor SameConv2d::forward(const at::Tensor& x) {
  const auto& kernel = *options.kernel_size();
  const auto& stride = *options.stride();
  const auto [rows, columns] = same_paddings(x, {kernel[0], kernel[1]}, {stride[0], stride[1]});
  // Padding common to both sides is free in the convolution; the rest costs a copy.
  const int64_t bottom = rows.after - rows.before, right = columns.after - columns.before;
  const at::Tensor padded =
      bottom == 0 && right == 0 ? x : at::constant_pad_nd(x, {0, right, 0, bottom});
  return at::conv2d(padded, weight, bias, stride, {rows.before, columns.before}, 1,
                    options.groups());
}

at::Tensor as_full_precision(const at::Tensor& value) {
  const auto type = value.scalar_type();
  return type == at::kHalf || type == at::kBFloat16 ? value.to(at::kFloat) : value;
}

void he_uniform_(const at::Tensor& weight) {
  torch::nn::init::kaiming_uniform_(weight, 0, torch::kFanIn, torch::kReLU);
}

void truncated_normal_(const at::Tensor& values, double sigma) {
  const torch::NoGradGuard no_grad;
  const double half = std::erf(2 / std::sqrt(2.0));  // the probability of being within 2 sigma
  values.uniform_(-half, half).erfinv_().mul_(sigma * std::sqrt(2.0));
}

std::shared_ptr<Model> make_squeeze(int64_t channels) {
  return std::make_shared<Squeeze>(channels);
}

}  // namespace lockstep::inline internal
