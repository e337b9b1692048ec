#pragma once
// What is done to gradients of a scaled loss.

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace lockstep {

/// Whether all values are numbers, none of them infinite; undefined tensors count as such.
/// Exact. Cost: one sum over each tensor; one transfer from the device for all tensors on it.
bool all_finite(std::span<const at::Tensor> tensors);

/// The gradients of `parameters`, where defined.
std::vector<at::Tensor> gradients_of(std::span<const at::Tensor> parameters);

/// Divides gradients by the scale of their loss, as a multiplication by its inverse (exact for
/// powers of two). A scale of 1 costs nothing.
void unscale(std::span<const at::Tensor> gradients, double scale);

}  // namespace lockstep
