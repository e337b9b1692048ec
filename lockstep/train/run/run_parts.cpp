#include "lockstep/train/run/run_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "lockstep/checkpoint/optimizer_state.h"
#include "lockstep/error.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/optim/parameter_groups.h"
#include "lockstep/train/task/logged_values.h"
#include "lockstep/train/task_parts.h"

namespace lockstep::inline internal {
namespace {

/// Errors: kInvalidArgument if the configuration has rates or decays for groups, which an optimizer
/// from elsewhere would ignore.
void refuse_rates(const OptimizerConfig& config) {
  const bool any = std::any_of(config.groups.begin(), config.groups.end(), [](const auto& group) {
    return group.lr_scale || group.weight_decay;
  });
  if (!any && config.layer_decay == 1) return;
  throw Error(ErrorCode::kInvalidArgument,
              "optimizer.groups and layer_decay have no effect on the recipe's own optimizer, "
              "except for `frozen`: give its groups their rates where it is made");
}

}  // namespace

namespace {

/// At the first checkpoint it would be too late. `of`: for errors.
void check_can_be_saved(const torch::optim::Optimizer& optimizer, const std::string& of) {
  try {
    optimizer_kind(optimizer);
  } catch (const Error& error) {
    throw Error(error.code(), of + ": " + error.what());
  }
}

}  // namespace

void make_optimizers(RunParts& parts, const Config& config, torch::nn::Module& weights,
                     const RunExtras& extras) {
  if (extras.optimizer || extras.training_step) refuse_rates(config.optimizer);
  if (extras.training_step) {
    parts.optimized = make_optimized(config, *parts.model, extras.optimizers);
    parts.optimizer = parts.optimized.front().optimizer;
    for (const auto& part : parts.optimized) {
      check_can_be_saved(*part.optimizer, fmt::format("the optimizer of '{}'", part.name));
    }
  } else if (extras.optimizer) {
    parts.optimizer = extras.optimizer(weights);
    if (!parts.optimizer) {
      throw Error(ErrorCode::kInvalidArgument, "the recipe's optimizer: no optimizer was made");
    }
    check_can_be_saved(*parts.optimizer, "the recipe's optimizer");
    drop_repeats(*parts.optimizer);
  } else {
    parts.optimizer = make_optimizer(config.optimizer, weights, config.scheduler.lr);
    check_can_be_saved(*parts.optimizer, fmt::format("optimizer.opt: '{}'", config.optimizer.opt));
  }
}

void name_logged_values(RunParts& parts, const Config& config, const RunExtras& extras) {
  parts.log_names = extras.log_names;
  const auto* own = std::get_if<OwnLoss>(&config.loss);
  if (own != nullptr && !extras.training_step) {
    const auto& names = own->make.log_names;
    parts.log_names.insert(parts.log_names.end(), names.begin(), names.end());
  }
  auto taken = parts.task->log_names();
  for (const auto& part : parts.optimized) taken.push_back(loss_field(part.name));
  const auto& fields = step_fields();
  taken.insert(taken.end(), fields.begin(), fields.end());
  check_log_names(parts.log_names, taken);
}

RunParts make_parts(const Config& config, const World& world, c10::Device device, bool own_results,
                    const RunExtras& extras) {
  RunParts parts;
  const VirtualRankRange virtual_ranks = virtual_ranks_of(config, world);
  const int64_t seed = config.system.seed;
  parts.model = make_model(config.model, seed, world.rank == 0);
  parts.model->to(device);
  freeze_parameters(config.optimizer, *parts.model);
  parts.masters = make_masters(config.system.amp_level, *parts.model);
  torch::nn::Module& weights = parts.masters ? parts.masters->module() : *parts.model;
  make_optimizers(parts, config, weights, extras);
  parts.task = make_task(config);
  name_logged_values(parts, config, extras);
  const int workers = workers_of(world);
  parts.train = make_data(config, virtual_ranks, true, workers, device);
  if (config.system.val_while_train) {
    parts.eval = make_data(config, virtual_ranks, false, workers, device);
  }
  parts.resumed = resume(config, own_results, weights, *parts.optimizer, parts.optimized);
  if (parts.masters) parts.masters->publish_all();
  if (config.train.ema) {
    parts.ema = std::make_unique<Ema>(weights, config.train.ema_decay);
    load_ema(parts.resumed.from, *parts.ema);
  }
  return parts;
}

DataSamples samples_of(const DataParts& data) {
  return {data.samplers.front().dataset_size(), data.digest};
}

}  // namespace lockstep::inline internal
