#pragma once
// How registries make built-in parts. Their settings are read without libtorch and OpenCV, but to
// make them takes these, so the trainer brings the functions.

#include "lockstep/data/steps.h"
#include "lockstep/registry.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

struct BuiltInMakers {
  OptimizerOfGroups (*optimizer)(const OptimizerConfig& config);
  /// With lr and num_epochs of each point.
  Schedule (*schedule)(const SchedulerConfig& config);
  /// Of a step on bytes, so neither Normalize nor RandomErasing.
  PictureTransform (*transform)(PictureStep step);
};

/// Errors: kInternal before set_built_in_makers().
const BuiltInMakers& built_in_makers();
/// Of the trainer, before it reads a configuration.
void set_built_in_makers(const BuiltInMakers& makers);

}  // namespace lockstep::inline internal
