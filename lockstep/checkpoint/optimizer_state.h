#pragma once
// The state of an optimizer between steps, as named tensors: "conv1.weight.exp_avg" and so on. The
// parameter's name is the key, so a file fits any process, whatever its addresses.

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <string>

#include "lockstep/weights.h"

namespace lockstep::inline internal {

/// "SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "LBFGS", or the name of a NamedStateOptimizer
/// (named_state.h). Errors: kInvalidArgument for any other optimizer.
std::string optimizer_kind(const torch::optim::Optimizer& optimizer);

/// Tensors per parameter: momentum_buffer (SGD); step, exp_avg, exp_avg_sq and, with amsgrad,
/// max_exp_avg_sq (Adam, AdamW); step and sum (Adagrad); step, square_avg and, if used,
/// momentum_buffer and grad_avg (RMSprop); step and the slots of a NamedStateOptimizer. LBFGS
/// stores all of its state under its first parameter. Parameters without state yet are left out.
/// Learning rate and other options are configuration, not state, and are not stored. Errors:
/// kInvalidArgument if the optimizer has a parameter that `module` does not name.
TensorMap optimizer_tensors(const torch::nn::Module& module,
                            const torch::optim::Optimizer& optimizer);

/// Those of them that load_optimizer() can leave in place: neither steps nor LBFGS's.
TensorMap optimizer_slots(const torch::nn::Module& module,
                          const torch::optim::Optimizer& optimizer);

/// Replaces the optimizer's state by the saved one, bit for bit. Everything is checked first.
/// Tensors of optimizer_slots(), under their names, stay the state. So their values may also come
/// later. Tensors that only `tensors` has become the state; others, and those for another device,
/// are copied. Errors, with nothing changed: kCorrupt, which names `file` and tensor.
void load_optimizer(const torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                    TensorMap tensors, const std::string& file);

}  // namespace lockstep::inline internal
