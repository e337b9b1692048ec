#pragma once
// The parts of a run, made from its configuration.

#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/ema.h"
#include "lockstep/train/optimized_parts.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/run/run.h"
#include "lockstep/train/same_on_ranks.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/task/task.h"

namespace lockstep::inline internal {

struct RunParts {
  std::shared_ptr<Model> model;
  std::unique_ptr<MasterWeights> masters;  ///< For amp_level O2 and O3.
  std::shared_ptr<torch::optim::Optimizer> optimizer;
  std::vector<OptimizedPart> optimized;  ///< With several optimizers; `optimizer` is the first's.
  std::unique_ptr<Ema> ema;
  std::unique_ptr<Task> task;
  std::vector<std::string> log_names;  ///< See name_logged_values().
  DataParts train;
  std::optional<DataParts> eval;
  Resumed resumed;
};

/// `parts.optimizer`, and `parts.optimized`, for `weights`: those of parts.model, or their masters.
/// Errors: kInvalidArgument for settings that optimizers of a recipe do not take.
void make_optimizers(RunParts& parts, const Config& config, torch::nn::Module& weights,
                     const RunExtras& extras);

/// Sets `parts.log_names`: what the recipe and a registered loss give to log_value(). Call it once
/// parts.task and parts.optimized are there. Errors: those of check_log_names().
void name_logged_values(RunParts& parts, const Config& config, const RunExtras& extras);

/// Finds all errors of the parts before anything is written. `own_results`: see resume().
/// Errors: those of the parts.
RunParts make_parts(const Config& config, const World& world, c10::Device device, bool own_results,
                    const RunExtras& extras = {});

/// Samples of the whole data set.
DataSamples samples_of(const DataParts& data);

}  // namespace lockstep::inline internal
