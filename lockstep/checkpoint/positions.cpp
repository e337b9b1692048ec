#include "lockstep/checkpoint/positions.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/cat.h>

#include <cmath>

namespace lockstep {

std::optional<int64_t> grid_side(at::IntArrayRef shape) {
  if (shape.size() != 3 || shape[0] != 1 || shape[1] < 2) return std::nullopt;
  const int64_t patches = shape[1] - 1;
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(patches))));
  return side * side == patches ? std::optional(side) : std::nullopt;
}

at::Tensor resize_positions(const at::Tensor& positions, int64_t side) {
  const int64_t from = *grid_side(positions.sizes()), width = positions.size(2);
  const at::Tensor values = positions.to(at::kFloat);
  const at::Tensor grid = values.narrow(1, 1, from * from)
                              .reshape({1, from, from, width})
                              .permute({0, 3, 1, 2})
                              .contiguous();  // (1, D, from, from)
  const at::Tensor resized =
      at::_upsample_bicubic2d_aa(grid, {side, side}, /*align_corners=*/false);
  const at::Tensor patches = resized.permute({0, 2, 3, 1}).reshape({1, side * side, width});
  return at::cat({values.narrow(1, 0, 1), patches}, 1);
}

}  // namespace lockstep
