#pragma once
// Shared by several networks and losses: MindSpore's padding, its initial values, types.

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/conv.h>

#include <array>
#include <memory>

#include "lockstep/models/model.h"

namespace lockstep::inline internal {

/// Padding of one dimension; see same_padding().
struct Padding {
  int64_t before = 0;
  int64_t after = 0;
};

/// MindSpore's pad_mode "same": the output has ceil(size / stride) elements; an odd element goes
/// behind. For kernel 3 and stride 2 on an even size it is 0 before and 1 after, unlike PyTorch's
/// usual 1 and 1. So weights for the one give different results with the other.
Padding same_padding(int64_t size, int64_t kernel, int64_t stride);

using Pair = std::array<int64_t, 2>;  // Rows, columns.

/// Pools with "same" padding, which does not count (-inf; the mean is over real elements). (N, C,
/// H, W) -> (N, C, ceil(H / stride[0]), ceil(W / stride[1])). Does not copy the input. Needs a
/// stride of at least 2 if the kernel is even.
at::Tensor max_pool_same(const at::Tensor& x, Pair kernel, Pair stride);
at::Tensor avg_pool_same(const at::Tensor& x, Pair kernel, Pair stride);

/// A convolution with "same" padding of zeros; the padding in its options is zero.
class SameConv2d final : public torch::nn::Conv2dImpl {
 public:
  using Conv2dImpl::Conv2dImpl;
  at::Tensor forward(const at::Tensor& x);
};

/// Half and bfloat16 as float32, others as they are.
at::Tensor as_full_precision(const at::Tensor& value);

/// U(-b, b), b = sqrt(6 / fan_in): MindSpore's HeUniform. In place.
void he_uniform_(const at::Tensor& weight);

/// Normal with deviation `sigma`, drawn again if beyond 2 sigma. In place.
void truncated_normal_(const at::Tensor& values, double sigma);

/// x * hardsigmoid(conv2(relu(conv1(mean of x)))): 1x1 convolutions to a quarter of the channels,
/// rounded down, and back. MindOCR's SEModule. (N, C, H, W) -> the same.
std::shared_ptr<Model> make_squeeze(int64_t channels);

}  // namespace lockstep::inline internal
