#pragma once
// Deformable convolution: each tap of each output has its own offset and weight.
// Source: Zhu et al., "Deformable ConvNets v2: More Deformable, Better Results", CVPR 2019.
// Legend: N images, C channels in, O channels out, K = kernel rows * kernel columns taps,
// H x W the input's size, H' x W' the output's.

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/conv.h>

#include "lockstep/models/layers.h"

namespace lockstep::inline internal {

/// out(o, p) = bias(o) + sum over c, k of weight(o, c, k) mask(k, p) x(c, stride p - padding + k +
/// offset(k, p)), where x between pixels is bilinear, and 0 outside.
/// x: (N, C, H, W); offset: (N, 2 K, H', W'), rows then columns of each tap in turn, in pixels
/// (torchvision's order); mask: (N, K, H', W'); weight: (O, C, kernel rows, kernel columns); bias:
/// (O), or undefined. Returns (N, O, H', W'). Differentiable once in all of them.
/// Computes in float32 or float64 (reduced precision as float32, then rounded). On the CPU it uses
/// our own loops. Their sums have one order for any number of threads, except for those of the
/// matrix products. Other devices use the way of deform_conv2d_composite(). Memory on the CPU:
/// C K H' W' numbers for one image at a time; backward computes them again. Errors:
/// kInvalidArgument for shapes that do not fit.
at::Tensor deform_conv2d(const at::Tensor& x, const at::Tensor& offset, const at::Tensor& mask,
                         const at::Tensor& weight, const at::Tensor& bias, Pair stride,
                         Pair padding);

/// Numbers per call: 256 MiB of float32, of which backward needs about five times as much.
inline constexpr int64_t kDeformColumns = int64_t{1} << 26;

/// The same from libtorch's own operations, on any device: tests compare it with the CPU's loops.
/// Each call takes as many images as have `numbers` columns (C K H' W' each) together, but at least
/// one. Memory beyond arguments and result: three times those columns forward and five times
/// backward, none of it in between. On CUDA, sums of x's gradient have no fixed order.
at::Tensor deform_conv2d_composite(const at::Tensor& x, const at::Tensor& offset,
                                   const at::Tensor& mask, const at::Tensor& weight,
                                   const at::Tensor& bias, Pair stride, Pair padding,
                                   int64_t numbers = kDeformColumns);

/// The convolution that computes offsets and masks for `conv`: 3 K outputs, with the kernel, stride
/// and padding of `conv`. It starts at 0: no offsets, and each mask 1/2.
torch::nn::Conv2d make_offset_conv(const torch::nn::Conv2d& conv);

/// Applies `conv` to x with the offsets of `offset_conv` (of make_offset_conv()) and, as mask, the
/// sigmoid of its last K outputs.
at::Tensor deformed(torch::nn::Conv2d& conv, torch::nn::Conv2d& offset_conv, const at::Tensor& x);

}  // namespace lockstep::inline internal
