#pragma once
// The optimizer that a configuration asks for; libtorch's own, so that its state is PyTorch's.

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <string>

#include "lockstep/train/config/config.h"

namespace lockstep {

/// Whether weight decay applies to a parameter of this name and number of dimensions. With
/// filter_bias_and_bn those with at most one dimension (biases, scales and shifts of norms) do not
/// decay; with no_weight_decay_params those whose name holds one of its texts do not.
bool decays(const OptimizerConfig& config, const std::string& name, int64_t dims);

/// Over all parameters of `model` that need a gradient, in at most two groups: decaying, then not;
/// each in the model's order. The learning rate is 0 until set_learning_rate().
/// Errors: kInvalidArgument (nothing to train, a value that libtorch refuses).
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerConfig& config,
                                                        const torch::nn::Module& model);

/// For all groups.
void set_learning_rate(torch::optim::Optimizer& optimizer, double lr);

/// Tensors of a parameter's size that the optimizer keeps: 0 to 2.
int state_copies(const OptimizerConfig& config);

}  // namespace lockstep
