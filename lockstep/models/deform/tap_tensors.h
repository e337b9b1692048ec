#pragma once
// Deformable convolution out of libtorch's own operations, for devices that taps.h has no loops
// for: the same numbers, but for the order of sums.
// Legend: n images, P places of the output, K taps, C channels.

#include <ATen/core/Tensor.h>

#include "lockstep/models/deform/taps.h"

namespace lockstep::deform {

struct Gradients {
  at::Tensor x, offset, mask;
};

/// (n P, K C): mask(k, p) * x at the tap. x: (n, rows, columns, C), contiguous; offset:
/// (n, 2 K, out rows, out columns); mask: (n, K, out rows, out columns). All of one floating type
/// and device. Memory: three times the result's.
at::Tensor tap_columns(const Shape& s, const at::Tensor& x, const at::Tensor& offset,
                       const at::Tensor& mask);

/// Gradients, shaped as the arguments, from those of the columns. Memory: four times the columns'.
/// On CUDA the sums of x's gradients have no fixed order (index_add_), as those of torchvision.
Gradients tap_gradients(const Shape& s, const at::Tensor& x, const at::Tensor& offset,
                        const at::Tensor& mask, const at::Tensor& grad_columns);

}  // namespace lockstep::deform
