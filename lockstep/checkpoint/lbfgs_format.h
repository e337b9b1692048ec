#pragma once

#include "lockstep/checkpoint/optimizer_state.h"

namespace lockstep::inline internal {

/// torch::optim::LBFGS: the direction, the history of steps, and counts as scalars.
OptimizerFormat lbfgs_format();

}  // namespace lockstep::inline internal
