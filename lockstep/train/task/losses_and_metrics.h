#pragma once
// The built-in losses and metrics of all tasks, made of what the configuration has about them.

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/train.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

class ClassScores;

/// `config`: not of a registered one. Of distillation it is the part without the teacher. Errors:
/// kInvalidArgument for settings that do not fit together.
LoggedLoss make_built_in_loss(const LossConfig& config);

/// The metric `name`, with its settings out of `config`. `classes`: num_classes of MetricMaker.
/// `scores`: of AucMetric and MapMetric. Errors: kInvalidArgument if the settings do not fit that
/// number of classes; those of det_metric() and rec_metric().
std::unique_ptr<Metric> make_built_in_metric(
    const MetricConfig& config, const std::string& name, int64_t classes,
    const std::shared_ptr<const ClassScores>& scores = nullptr);

}  // namespace lockstep::inline internal
