#pragma once
// Positions of vision transformers, for pictures of another size.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace lockstep {

/// The side of the grid of patches of a tensor of positions (1, 1 + side * side, D), which begins
/// with the token of the class. Nothing for other shapes.
std::optional<int64_t> grid_side(at::IntArrayRef shape);

/// (1, 1 + from * from, D) to (1, 1 + side * side, D) float32: the token as it is, the patches
/// interpolated bicubically with antialias, as timm does.
at::Tensor resize_positions(const at::Tensor& positions, int64_t side);

}  // namespace lockstep
