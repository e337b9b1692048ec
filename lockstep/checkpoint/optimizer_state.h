#pragma once
// What an optimizer remembers between steps, as named tensors: "conv1.weight.exp_avg" and so on,
// keyed by the parameter's name so that a file fits any process, whatever its addresses.

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include "lockstep/checkpoint/safetensors.h"

namespace lockstep {

/// "SGD", "Adam", "AdamW", "Adagrad", or what a NamedStateOptimizer is called. Errors:
/// kInvalidArgument for an optimizer that is none of these.
std::string optimizer_kind(const torch::optim::Optimizer& optimizer);

/// Per parameter: momentum_buffer (SGD); step, exp_avg, exp_avg_sq and, with amsgrad,
/// max_exp_avg_sq (Adam, AdamW); step and sum (Adagrad); step and the slots of a
/// NamedStateOptimizer. Parameters without state yet are left out. Learning rate and other
/// options are configuration, not state, and are not stored.
/// Errors: kInvalidArgument when the optimizer has a parameter that `module` does not name.
TensorMap optimizer_tensors(const torch::nn::Module& module,
                            const torch::optim::Optimizer& optimizer);

/// Replaces the optimizer's state, bit for bit that of the saved one. Everything is checked first.
/// Errors, nothing changed: kCorrupt naming `file` and tensor.
void load_optimizer(const torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                    const TensorMap& tensors, const std::string& file);

}  // namespace lockstep
