#pragma once
// How registries make built-in parts. Their settings are read without libtorch and OpenCV, but to
// make them takes these, so the trainer brings the functions.

#include <optional>

#include "lockstep/data/steps.h"
#include "lockstep/registry.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// A built-in data set, for one of a program's own that takes its batches.
struct WrappedDataset {
  ModelType task;
  /// `usage` of a classifier's may be empty: then it follows DatasetUse.
  DatasetConfig config;
  std::optional<bool> training;  ///< Of the section it was read from; none: it is for both.
  /// In `eval`: the one of this type and place within train.dataset, whose classes this one has.
  std::optional<DatasetConfig> of_training{};
};

struct BuiltInMakers {
  BackboneMaker (*backbone)(const BackboneConfig& config);
  DatasetMaker (*dataset)(const WrappedDataset& dataset);
  /// Not of a registered one.
  LoggedLoss (*loss)(const LossConfig& config);
  /// The built-in metric `name`, with its settings out of `config`.
  MetricMaker (*metric)(const MetricConfig& config, const std::string& name);
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
