#pragma once
// How registries make built-in parts. Their settings are read without libtorch, but to make them
// takes it, so the trainer brings these functions.

#include "lockstep/registry.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

struct BuiltInMakers {
  OptimizerOfGroups (*optimizer)(const OptimizerConfig& config);
  /// With lr and num_epochs of each point.
  Schedule (*schedule)(const SchedulerConfig& config);
  /// Not of a registered one.
  LoggedLoss (*loss)(const LossConfig& config);
  /// The built-in metric `name`, with its settings out of `config`.
  MetricMaker (*metric)(const MetricConfig& config, const std::string& name);
};

/// Errors: kInternal before set_built_in_makers().
const BuiltInMakers& built_in_makers();
/// Of the trainer, before it reads a configuration.
void set_built_in_makers(const BuiltInMakers& makers);

}  // namespace lockstep::inline internal
