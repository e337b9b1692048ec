#pragma once
// What several networks and losses here share: MindSpore's way to pad, its start values, types.

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/conv.h>

#include <array>
#include <memory>

#include "lockstep/models/model.h"

namespace lockstep {

/// Of one dimension; see same_padding().
struct Padding {
  int64_t before = 0;
  int64_t after = 0;
};

/// MindSpore's pad_mode "same": so that the output has ceil(size / stride) elements; an odd one
/// goes behind. For kernel 3 and stride 2 on an even size that is 0 before and 1 after, where
/// PyTorch's habit is 1 and 1: weights of the one give other numbers under the other.
Padding same_padding(int64_t size, int64_t kernel, int64_t stride);

using Pair = std::array<int64_t, 2>;  // Rows, columns.

/// Pools with "same" padding, as which nothing counts (-inf; the mean is over what is there).
/// (N, C, H, W) -> (N, C, ceil(H / stride[0]), ceil(W / stride[1])). No copy of the input.
/// Needs a stride of at least 2 where the kernel is even.
at::Tensor max_pool_same(const at::Tensor& x, Pair kernel, Pair stride);
at::Tensor avg_pool_same(const at::Tensor& x, Pair kernel, Pair stride);

/// A convolution (of zero padding in its options) with "same" padding of zeros.
class SameConv2d final : public torch::nn::Conv2dImpl {
 public:
  using Conv2dImpl::Conv2dImpl;
  at::Tensor forward(const at::Tensor& x);
};

/// Half and bfloat16 as float32, others as they are.
at::Tensor as_full_precision(const at::Tensor& value);

/// U(-b, b), b = sqrt(6 / fan_in): MindSpore's HeUniform. In place.
void he_uniform_(const at::Tensor& weight);

/// Normal with deviation `sigma`, drawn again where it is beyond 2 sigma. In place.
void truncated_normal_(const at::Tensor& values, double sigma);

/// x * hardsigmoid(conv2(relu(conv1(mean of x)))): 1x1 convolutions to a quarter of the channels,
/// rounded down, and back. MindOCR's SEModule. (N, C, H, W) -> the same.
std::shared_ptr<Model> make_squeeze(int64_t channels);

}  // namespace lockstep
