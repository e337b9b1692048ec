#pragma once
// Positions of vision transformers, for pictures of another size.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace lockstep {

/// The side of the grid of patches in positions (1, 1 + side * side, D). The token of the class
/// comes first. Nothing for other shapes.
std::optional<int64_t> grid_side(at::IntArrayRef shape);

/// (1, 1 + from * from, D) to (1, 1 + side * side, D) float32. The token stays as it is. Patches
/// are interpolated bicubically with antialias, as in timm.
at::Tensor resize_positions(const at::Tensor& positions, int64_t side);

}  // namespace lockstep
