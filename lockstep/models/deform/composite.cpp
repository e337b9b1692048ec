#include <ATen/ops/arange.h>
#include <ATen/ops/grid_sampler.h>
#include <ATen/ops/stack.h>

#include "lockstep/models/deform/deform_conv.h"

namespace lockstep {
namespace {

/// Where the taps of one dimension lie without offsets: (kernel, outputs).
at::Tensor grid_of(int64_t kernel, int64_t outputs, int64_t stride, int64_t pad,
                   const at::TensorOptions& options) {
  return at::arange(kernel, options).view({-1, 1}) +
         at::arange(outputs, options).view({1, -1}) * stride - pad;
}

/// Pixels as grid_sampler() counts them without align_corners: [-1, 1] from edge to edge.
at::Tensor normalized(const at::Tensor& pixel, int64_t size) {
  return (2 * pixel + 1) / static_cast<double>(size) - 1;
}

}  // namespace

at::Tensor deform_conv2d_composite(const at::Tensor& x, const at::Tensor& offset,
                                   const at::Tensor& mask, const at::Tensor& weight,
                                   const at::Tensor& bias, Pair stride, Pair padding) {
  const int64_t n = x.size(0), kernel_rows = weight.size(2), kernel_columns = weight.size(3);
  const int64_t taps = kernel_rows * kernel_columns, h = mask.size(2), w = mask.size(3);
  const auto type = x.scalar_type();
  const auto moved = offset.to(type).view({n, kernel_rows, kernel_columns, 2, h, w});
  const auto rows =
      moved.select(3, 0) +
      grid_of(kernel_rows, h, stride[0], padding[0], x.options()).view({1, kernel_rows, 1, h, 1});
  const auto columns =
      moved.select(3, 1) + grid_of(kernel_columns, w, stride[1], padding[1], x.options())
                               .view({1, 1, kernel_columns, 1, w});
  const auto grid = at::stack({normalized(columns, x.size(3)), normalized(rows, x.size(2))}, -1)
                        .view({n, taps * h, w, 2});
  const auto sampled = at::grid_sampler(x, grid, /*bilinear*/ 0, /*zeros*/ 0, false)
                           .view({n, x.size(1), taps, h, w});
  const auto weighed = (sampled * mask.to(type).unsqueeze(1)).flatten(1, 2).flatten(2);
  const auto out = at::matmul(weight.to(type).flatten(1), weighed).view({n, weight.size(0), h, w});
  return bias.defined() ? out + bias.to(type).view({1, -1, 1, 1}) : out;
}

}  // namespace lockstep
