#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <string>

#include "lockstep/weights.h"

namespace lockstep::inline internal {

/// The format of an optimizer's state that is more than a few tensors.
struct OptimizerFormat {
  std::string kind;  ///< Its name in a checkpoint.
  std::function<bool(const torch::optim::Optimizer&)> fits;
  /// Converts a parameter's state to tensors with names of its own choice; numbers become scalars.
  std::function<TensorMap(const torch::optim::OptimizerParamState&)> save;
  /// The inverse. Throws Error(kCorrupt) with the defect; the caller adds the place.
  std::function<std::unique_ptr<torch::optim::OptimizerParamState>(const TensorMap&)> load;
};

/// torch::optim::LBFGS: the direction, the history of steps, and counts as scalars.
OptimizerFormat lbfgs_format();

}  // namespace lockstep::inline internal
