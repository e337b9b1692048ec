#pragma once
// An optimizer's step by functions of lists of tensors.

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

namespace lockstep::inline internal {

/// Does what `optimizer.step()` of libtorch does, with its options and state, on all parameters of
/// a group at once. Parameters and gradients are dense tensors on any device. Adam and AdamW have
/// no amsgrad. On CPUs ATen takes tensor by tensor, and the bits are those of libtorch's step.
void foreach_step(torch::optim::SGD& optimizer);
void foreach_step(torch::optim::Adam& optimizer);
void foreach_step(torch::optim::AdamW& optimizer);

}  // namespace lockstep::inline internal
