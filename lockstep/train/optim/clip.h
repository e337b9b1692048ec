#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace lockstep {

/// Scales the gradients so that their norm, all taken as one vector, is at most `max_norm`; returns
/// the norm before. Undefined gradients count as none. Reads every gradient once, and once more
/// only when it must be scaled. Sums in float64 over the gradients' own norms, so the result does
/// not depend on how they lie in memory.
/// Source: torch.nn.utils.clip_grad_norm_, with its 1e-6 in the divisor.
double clip_gradients(std::span<const at::Tensor> parameters, double max_norm);

}  // namespace lockstep
