#pragma once
// Which parameters of a network are trained, with which rate and weight decay; and the layers that
// are not.

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/train.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

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

/// Over all parameters of `model` that need a gradient, by weight decay and rate, the highest
/// first; each in the model's order. A parameter of two names is in one group, by its first name.
/// `peak`: scheduler.lr. Errors: kInvalidArgument (nothing to train).
std::vector<ParameterGroup> parameter_groups(const OptimizerConfig& config,
                                             const torch::nn::Module& model, double peak);

/// Parameters of groups with `frozen` need no gradient from now on. Call it before
/// DistributedDataParallel and optimizer are made. Errors: those of check_groups().
void freeze_parameters(const OptimizerConfig& config, torch::nn::Module& model);

/// An optimizer of module.parameters() has a weight of two names twice, and would step it twice:
/// the second entry goes.
void drop_repeats(torch::optim::Optimizer& optimizer);

/// Numbers in all parameters that need a gradient.
int64_t count_trainable(const torch::nn::Module& model);

/// "Parameters: 2 of 62 are trained, 60 are frozen; rates of 0.1 to 10 times the schedule's". Empty
/// without groups and layer decay.
std::string groups_line(const OptimizerConfig& config, const torch::nn::Module& model);

/// The batch norms of groups with keep_statistics: those whose running statistics the patterns
/// select, as "layer1.*" does.
class KeptStatistics {
 public:
  /// Their statistics stay as they are now.
  KeptStatistics(const OptimizerConfig& config, const torch::nn::Module& model);
  /// They normalise by their statistics. Call it after train(), which changes that.
  void hold();
  /// Call it after a step: an average over virtual ranks may have changed the last bits.
  void restore();

 private:
  std::vector<std::shared_ptr<torch::nn::Module>> norms_;
  std::vector<std::pair<at::Tensor, at::Tensor>> values_;  ///< A buffer and its values.
};

}  // namespace lockstep::inline internal
