#include "lockstep/models/deform/taps.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace lockstep::deform {
namespace {

/// corners_of() of every tap; all tensors are (n, P, K).
struct CornerTensors {
  std::array<at::Tensor, 4> pixel;   ///< Index among n rows columns pixels; the first if outside.
  std::array<at::Tensor, 4> inside;  ///< 1 or 0.
  std::array<at::Tensor, 4> weight;  ///< 0 outside.
  at::Tensor down, right;
};

/// (n, K, out rows, out columns) -> (n, P, K).
at::Tensor places_first(const at::Tensor& maps) {
  return maps.flatten(2).transpose(1, 2);
}

/// Positions of the taps of one dimension without offsets: (outputs, kernel).
at::Tensor grid_of(int64_t outputs, int64_t stride, int64_t pad, int64_t kernel,
                   const at::TensorOptions& options) {
  return (at::arange(outputs, options) * stride - pad).unsqueeze(1) + at::arange(kernel, options);
}

/// Rows (`side` 0) or columns (1) of the taps: (n, P, K).
at::Tensor positions(const Shape& s, const at::Tensor& offset, int64_t side) {
  const auto grid =
      side == 0 ? grid_of(s.out_rows, s.stride_rows, s.pad_rows, s.kernel_rows, offset.options())
                      .view({s.out_rows, 1, s.kernel_rows, 1})
                : grid_of(s.out_columns, s.stride_columns, s.pad_columns, s.kernel_columns,
                          offset.options())
                      .view({1, s.out_columns, 1, s.kernel_columns});
  const auto everywhere = grid.expand({s.out_rows, s.out_columns, s.kernel_rows, s.kernel_columns})
                              .reshape({1, s.places(), s.taps()});
  const auto moves = offset.view({offset.size(0), s.taps(), 2, s.out_rows, s.out_columns});
  return places_first(moves.select(2, side)) + everywhere;
}

/// False for NaN.
at::Tensor within(const at::Tensor& position, double low, int64_t high) {
  return position.gt(low).logical_and(position.lt(static_cast<double>(high)));
}

CornerTensors corners_of(const Shape& s, const at::Tensor& offset) {
  at::Tensor y = positions(s, offset, 0), x = positions(s, offset, 1);
  const auto near = within(y, -1, s.rows).logical_and(within(x, -1, s.columns));
  // Far positions and NaN cannot be converted to whole numbers below.
  y = at::where(near, y, at::zeros_like(y));
  x = at::where(near, x, at::zeros_like(x));
  CornerTensors at;
  const at::Tensor top = y.floor(), left = x.floor();
  at.down = y - top;
  at.right = x - left;
  const auto first =
      (at::arange(offset.size(0), offset.options().dtype(at::kLong)) * (s.rows * s.columns))
          .view({-1, 1, 1});
  for (int64_t i = 0; i < 4; ++i) {
    const auto corner = static_cast<size_t>(i);
    const at::Tensor row = top + i / 2, column = left + i % 2;
    const auto inside =
        near.logical_and(within(row, -0.5, s.rows)).logical_and(within(column, -0.5, s.columns));
    const at::Tensor pixel = row.to(at::kLong) * s.columns + column.to(at::kLong);
    at.inside[corner] = inside.to(offset.scalar_type());
    at.pixel[corner] = at::where(inside, pixel, at::zeros_like(pixel)) + first;
    at.weight[corner] = (i / 2 == 0 ? 1 - at.down : at.down) *
                        (i % 2 == 0 ? 1 - at.right : at.right) * at.inside[corner];
  }
  return at;
}

}  // namespace

at::Tensor tap_columns(const Shape& s, const at::Tensor& x, const at::Tensor& offset,
                       const at::Tensor& mask) {
  const auto at = corners_of(s, offset);
  const at::Tensor pixels = x.view({-1, s.channels}), m = places_first(mask);
  at::Tensor columns = at::zeros({m.numel(), s.channels}, x.options());
  for (size_t i = 0; i < 4; ++i) {
    columns.addcmul_(pixels.index_select(0, at.pixel[i].flatten()),
                     (at.weight[i] * m).reshape({-1, 1}));
  }
  return columns.view({x.size(0) * s.places(), s.taps() * s.channels});
}

Gradients tap_gradients(const Shape& s, const at::Tensor& x, const at::Tensor& offset,
                        const at::Tensor& mask, const at::Tensor& grad_columns) {
  const auto at = corners_of(s, offset);
  const at::Tensor pixels = x.view({-1, s.channels}), m = places_first(mask);
  const at::Tensor grad = grad_columns.reshape({-1, s.channels});
  at::Tensor grad_x = at::zeros_like(pixels);
  std::array<at::Tensor, 4> d;  // a corner pixel's gradient per unit of weight
  for (size_t i = 0; i < 4; ++i) {
    const auto pixel = at.pixel[i].flatten();
    d[i] = (pixels.index_select(0, pixel) * grad).sum(1).view(m.sizes()) * at.inside[i];
    grad_x.index_add_(0, pixel, grad * (at.weight[i] * m).reshape({-1, 1}));
  }
  const auto rows = m * ((1 - at.right) * (d[2] - d[0]) + at.right * (d[3] - d[1]));
  const auto columns = m * ((1 - at.down) * (d[1] - d[0]) + at.down * (d[3] - d[2]));
  at::Tensor of_mask = at.weight[0] * d[0];
  for (size_t i = 1; i < 4; ++i) of_mask = of_mask + at.weight[i] * d[i];
  return {grad_x.view(x.sizes()),
          at::stack({rows, columns}, 3).flatten(2).transpose(1, 2).reshape(offset.sizes()),
          of_mask.transpose(1, 2).reshape(mask.sizes())};
}

}  // namespace lockstep::deform
