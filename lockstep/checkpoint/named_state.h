#pragma once
// Base of Lockstep's own optimizers, for checkpoints: their state of a parameter is tensors of its
// shape, by name.

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::inline internal {

/// State of one parameter.
struct NamedParamState : torch::optim::OptimizerCloneableParamState<NamedParamState> {
  int64_t step = 0;                 ///< Updates so far.
  std::vector<at::Tensor> tensors;  ///< In the order of NamedStateOptimizer::slots().
};

class NamedStateOptimizer : public torch::optim::Optimizer {
 public:
  using Options = torch::optim::OptimizerOptions;

  /// Each group keeps its own options. libtorch 2.13 replaces them by `defaults` if it does not
  /// know their type.
  NamedStateOptimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                      std::unique_ptr<Options> defaults)
      : Optimizer(groups, std::move(defaults)) {
    for (size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].has_options()) param_groups_[i].set_options(groups[i].options().clone());
    }
  }

  /// The name in checkpoints: "Lion".
  virtual const std::string& kind() const = 0;
  virtual const std::vector<std::string>& slots() const = 0;
};

}  // namespace lockstep::inline internal
