#pragma once
// The optimizer of a configuration. It is libtorch's own if that computes the same as MindSpore's,
// so that its state is PyTorch's. One difference remains: MindSpore's nn.Adam adds eps before it
// corrects the bias of the second moment. Its eps thus counts as eps / sqrt(1 - beta2^t): 32 times
// as much in the first step, equal after some thousand.

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

/// Whether weight decay applies to a parameter. With exact_decay these do not decay:
/// - with filter_bias_and_bn, or the strategy filter_norm_and_bias: parameters with at most one
///   dimension (biases, scales and shifts of norms);
/// - with no_weight_decay_params: parameters whose name contains one of its texts, or whose name in
///   MindSpore does (gamma and beta of norms);
/// - with the strategy svtr: one dimension, and names with "norm" and "pos_embed".
/// A strategy takes precedence over the other two keys. Without exact_decay: see
/// OptimizerConfig::exact_decay.
bool decays(const OptimizerConfig& config, const ParameterFacts& parameter);

/// Over all parameters of `model` that need a gradient, in at most two groups: with decay, then
/// without; each in the model's order. The learning rate is 0 until set_learning_rate().
/// Errors: kInvalidArgument (nothing to train, a value that libtorch refuses).
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerConfig& config,
                                                        const torch::nn::Module& model);

/// Sets the rate of all groups.
void set_learning_rate(torch::optim::Optimizer& optimizer, double lr);

/// Learning rates of an optimizer's groups under one schedule. A group may have a rate of its own
/// at construction, as layers in fine tuning; it gets that rate times lr / peak. One with rate 0,
/// the value of make_optimizer(), gets lr.
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

/// Scales the gradients so that their norm, as one vector, is at most `max_norm`; returns the norm
/// before. Undefined gradients are skipped. Reads every gradient once, and once more only to scale
/// it. Sums the gradients' own norms in float64, so the result does not depend on their memory
/// layout.
/// Source: torch.nn.utils.clip_grad_norm_, with its 1e-6 in the divisor.
double clip_gradients(std::span<const at::Tensor> parameters, double max_norm);

}  // namespace lockstep
