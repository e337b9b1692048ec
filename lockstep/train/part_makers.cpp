#include "lockstep/train/part_makers.h"

#include "lockstep/train/config/built_in_makers.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/schedule/schedule.h"
#include "lockstep/train/task/losses_and_metrics.h"
#include "lockstep/train/zoo_parts.h"

namespace lockstep::inline internal {
namespace {

OptimizerOfGroups optimizer_maker(const OptimizerConfig& config) {
  return [config](const std::vector<ParameterGroup>& groups) {
    return make_built_in_optimizer(config, groups);
  };
}

Schedule schedule_maker(const SchedulerConfig& config) {
  return [config](const SchedulePoint& point) {
    SchedulerConfig at = config;
    at.lr = point.lr;
    at.num_epochs = point.num_epochs;
    return learning_rate(at, point.step, point.steps_per_epoch);
  };
}

MetricMaker metric_maker(const MetricConfig& config, const std::string& name) {
  return [config, name](int64_t classes) { return make_built_in_metric(config, name, classes); };
}

}  // namespace

void register_built_in_parts() {
  register_zoo();
  set_built_in_makers({.optimizer = optimizer_maker,
                       .schedule = schedule_maker,
                       .loss = make_built_in_loss,
                       .metric = metric_maker});
}

}  // namespace lockstep::inline internal
