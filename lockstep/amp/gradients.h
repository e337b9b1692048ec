#pragma once
// Operations on gradients of a scaled loss.

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace lockstep::inline internal {

/// True if all values are finite; undefined tensors count as finite. Exact. Cost: one sum over each
/// tensor; one transfer from the device for all tensors on it.
bool all_finite(std::span<const at::Tensor> tensors);

/// The defined gradients of `parameters`.
std::vector<at::Tensor> gradients_of(std::span<const at::Tensor> parameters);

/// The Euclidean norm of each tensor, a tensor without dimensions on its device. Cost: on CUDA a
/// few kernels for all, elsewhere one for each.
std::vector<at::Tensor> norms_of(std::span<const at::Tensor> tensors);
/// Multiplies the tensors in place. Cost: as norms_of().
void multiply(std::span<const at::Tensor> tensors, double factor);

/// Divides gradients by the scale of their loss, by multiplying with its inverse (exact for powers
/// of two). A scale of 1 costs nothing.
void unscale(std::span<const at::Tensor> gradients, double scale);

}  // namespace lockstep::inline internal
