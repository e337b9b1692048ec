#pragma once
// What an optimizer remembers between steps, as named tensors: "conv1.weight.exp_avg" and so on,
// keyed by the parameter's name so that a file fits any process, whatever its addresses.

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <string>

#include "lockstep/safetensors.h"

namespace lockstep {

/// How the state of another optimizer is kept: one that is neither libtorch's own nor a
/// NamedStateOptimizer (named_state.h), which is the simpler way for one that is written anew.
struct OptimizerFormat {
  std::string kind;  ///< What a checkpoint calls it.
  std::function<bool(const torch::optim::Optimizer&)> fits;
  /// A parameter's state as tensors by names of one's own; numbers as scalars.
  std::function<TensorMap(const torch::optim::OptimizerParamState&)> save;
  /// The other way round. Throws Error(kCorrupt) with what is wrong; the caller adds where.
  std::function<std::unique_ptr<torch::optim::OptimizerParamState>(const TensorMap&)> load;
};
/// From now on checkpoints take such optimizers. Before threads use checkpoints.
void register_optimizer_format(OptimizerFormat format);

/// "SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "LBFGS", or what a NamedStateOptimizer or an
/// OptimizerFormat is called. Errors: kInvalidArgument for an optimizer that is none of these.
std::string optimizer_kind(const torch::optim::Optimizer& optimizer);

/// Per parameter: momentum_buffer (SGD); step, exp_avg, exp_avg_sq and, with amsgrad,
/// max_exp_avg_sq (Adam, AdamW); step and sum (Adagrad); step, square_avg and, where they are used,
/// momentum_buffer and grad_avg (RMSprop); step and the slots of a NamedStateOptimizer. LBFGS has
/// all of its under its first parameter. Parameters without state yet are left out. Learning rate
/// and other options are configuration, not state, and are not stored.
/// Errors: kInvalidArgument when the optimizer has a parameter that `module` does not name.
TensorMap optimizer_tensors(const torch::nn::Module& module,
                            const torch::optim::Optimizer& optimizer);

/// Replaces the optimizer's state, bit for bit that of the saved one. Everything is checked first.
/// Errors, nothing changed: kCorrupt naming `file` and tensor.
void load_optimizer(const torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                    const TensorMap& tensors, const std::string& file);

}  // namespace lockstep
