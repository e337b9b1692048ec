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
#include <vector>

#include "lockstep/train.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// Over parameter_groups(). `peak`: scheduler.lr, of which groups with a scale have their rates;
/// the others have 0 until GroupRates::set(). Errors: kInvalidArgument (nothing to train, a value
/// that libtorch refuses, a registered one that makes none or other groups).
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerConfig& config,
                                                        const torch::nn::Module& model,
                                                        double peak = 1);

/// The same for groups that are given, without a registered one.
std::unique_ptr<torch::optim::Optimizer> make_built_in_optimizer(
    const OptimizerConfig& config, const std::vector<ParameterGroup>& groups);

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

/// Tensors of a parameter's size that the optimizer keeps: 0 to 4; 2 of a registered one.
int state_copies(const OptimizerConfig& config);

/// Scales the gradients so that their norm, as one vector, is at most `max_norm`; returns the norm
/// before. Undefined gradients are skipped. Reads every gradient once, and once more only to scale
/// it. Sums the gradients' own norms in float64, so the result does not depend on their memory
/// layout.
/// Source: torch.nn.utils.clip_grad_norm_, with its 1e-6 in the divisor.
double clip_gradients(std::span<const at::Tensor> parameters, double max_norm);

}  // namespace lockstep::inline internal
