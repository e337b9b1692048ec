#include "lockstep/train/part_makers.h"

#include "lockstep/data/pictures/own_step.h"
#include "lockstep/models/build/build_model.h"
#include "lockstep/train.h"
#include "lockstep/train/config/built_in_makers.h"
#include "lockstep/train/config/config_section.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/schedule/schedule.h"
#include "lockstep/train/task/losses_and_metrics.h"
#include "lockstep/train/wrapped_data.h"
#include "lockstep/train/zoo_parts.h"

namespace lockstep::inline internal {
namespace {

BackboneMaker backbone_maker(const BackboneConfig& config) {
  return [config] { return build_backbone(config); };
}

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
    at.warmup_epochs = point.warmup_epochs;
    return learning_rate(at, point.step, point.steps_per_epoch);
  };
}

MetricMaker metric_maker(const MetricConfig& config, const std::string& name) {
  return [config, name](int64_t classes) { return make_built_in_metric(config, name, classes); };
}

}  // namespace

void register_built_in_parts() {
  register_zoo();
  set_built_in_makers({.backbone = backbone_maker,
                       .dataset = wrapped_dataset_maker,
                       .loss = make_built_in_loss,
                       .metric = metric_maker,
                       .optimizer = optimizer_maker,
                       .schedule = schedule_maker,
                       .transform = step_as_transform});
}

}  // namespace lockstep::inline internal

namespace lockstep {

void with_settings(const std::string& part, const std::vector<std::string>& items,
                   const std::function<void(Section& settings)>& read) {
  register_built_in_parts();
  Node node;
  node.location.source = std::make_shared<const std::string>("settings of " + part);
  apply_overrides(node, items, part + ": ");
  expand_variables(node);
  ConfigSection section(node, part);
  read(section);
  section.finish();
}

}  // namespace lockstep
