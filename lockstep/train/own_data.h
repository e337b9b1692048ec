#pragma once
// A registered data set as the trainer takes it: every batch is checked, because the trainer relies
// on its rows, and networks and losses on its names.

#include <memory>

#include "lockstep/batch.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// A registered data set of section `train` or `eval`. Errors: kInvalidArgument if it has no
/// samples; its own.
std::unique_ptr<const BatchMaker> make_own_dataset(const Config& config, bool training);

}  // namespace lockstep::inline internal
