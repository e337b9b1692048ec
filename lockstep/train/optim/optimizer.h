#pragma once
// The optimizer that a configuration asks for; libtorch's own where it has one that computes what
// MindSpore's does, so that its state is PyTorch's. One difference is left: MindSpore's nn.Adam
// adds eps before it corrects the second moment's bias, so that its eps counts as eps / sqrt(1 -
// beta2^t): 32 times as much in the first step, no more after some thousand.

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/train/config/config.h"

namespace lockstep {

struct ParameterFacts {
  std::string name;
  int64_t dims = 0;
  bool of_norm = false;  ///< Scale or shift of a norm.
};

/// Whether weight decay applies to a parameter. Exactly: with filter_bias_and_bn, or the strategy
/// filter_norm_and_bias, those with at most one dimension (biases, scales and shifts of norms) do
/// not; with no_weight_decay_params those whose name holds one of its texts, or whose name in
/// MindSpore does (gamma and beta of norms), do not; the strategy svtr leaves out one dimension,
/// and names with "norm" and "pos_embed". A strategy stands before the other two keys. As
/// MindSpore: see OptimizerConfig::exact_decay.
bool decays(const OptimizerConfig& config, const ParameterFacts& parameter);

/// Over all parameters of `model` that need a gradient, in at most two groups: decaying, then not;
/// each in the model's order. The learning rate is 0 until set_learning_rate().
/// Errors: kInvalidArgument (nothing to train, a value that libtorch refuses).
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerConfig& config,
                                                        const torch::nn::Module& model);

/// For all groups.
void set_learning_rate(torch::optim::Optimizer& optimizer, double lr);

/// Learning rates of an optimizer's groups under one schedule. A group that had a rate of its own
/// when this was made, as layers have in fine tuning, gets it times lr / peak; one with rate 0, as
/// make_optimizer() leaves it, gets lr.
class GroupRates {
 public:
  /// `peak`: of the schedule (scheduler.lr); greater than 0 where groups have rates.
  GroupRates(torch::optim::Optimizer& optimizer, double peak);
  void set(double lr);

 private:
  torch::optim::Optimizer& optimizer_;
  double peak_;
  std::vector<double> initial_;  ///< By group.
};

/// Tensors of a parameter's size that the optimizer keeps: 0 to 4.
int state_copies(const OptimizerConfig& config);

/// Scales the gradients so that their norm, all taken as one vector, is at most `max_norm`; returns
/// the norm before. Undefined gradients count as none. Reads every gradient once, and once more
/// only when it must be scaled. Sums in float64 over the gradients' own norms, so the result does
/// not depend on how they lie in memory.
/// Source: torch.nn.utils.clip_grad_norm_, with its 1e-6 in the divisor.
double clip_gradients(std::span<const at::Tensor> parameters, double max_norm);

}  // namespace lockstep
