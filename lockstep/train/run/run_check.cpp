#include <fmt/format.h>

#include <cstdio>

#include "lockstep/base/log.h"
#include "lockstep/train/batch_share.h"
#include "lockstep/train/compute_device.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/config/yaml_writer.h"
#include "lockstep/train/last_batch.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/optim/parameter_groups.h"
#include "lockstep/train/patience.h"
#include "lockstep/train/results_folder.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/run/run.h"
#include "lockstep/train/run/run_parts.h"
#include "lockstep/train/run_summary.h"
#include "lockstep/train/same_on_ranks.h"
#include "lockstep/train/schedule/schedule.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/task/task.h"
#include "lockstep/train/task_parts.h"

namespace lockstep::inline internal {
namespace {

/// What evaluations give, and what follows one of these figures.
void check_figures(const Config& config, const Task& task) {
  const auto names = task.metric_names();
  if (config.system.val_while_train) check_main_indicator(config.metric.main_indicator, names);
  if (config.scheduler.scheduler == "reduce_on_plateau") {
    check_watched("scheduler.metric", config.scheduler.plateau.metric, names);
  }
  if (config.train.early_stopping) {
    check_watched("train.early_stopping.metric", config.train.early_stopping->metric, names);
  }
}

}  // namespace

int run_check(const Config& given, World world) {
  Config config = given;
  check_world(config, world);
  share_global_batch(config, world);
  check_results_folder(config.train.ckpt_save_dir);
  const auto device = take_compute_device(config, world);
  auto group = ProcessGroup::create(world, group_options(config.parallel));
  check_same_config(given, group);
  RunParts parts;
  parts.model = make_model(without_pretrained(config.model), config.system.seed);
  freeze_parameters(config.optimizer, *parts.model);
  const RunExtras extras = extras_of(config);
  make_optimizers(parts, config, *parts.model, extras);
  const auto resumed = resume(config, false, *parts.model, *parts.optimizer, parts.optimized);
  check_same_start(resumed.state.step, resumed.from, group);
  parts.task = make_task(config, /*trains=*/false);
  name_logged_values(parts, config, extras);
  check_figures(config, *parts.task);
  const CheckedData data = task_parts(config).check_data(config);
  if (world.rank != 0) return 0;
  // A new run moves the results of an earlier one, with its classes.txt.
  const auto& dir = config.train.ckpt_save_dir;
  if (!has_results(dir)) check_class_names(dir, data.classes);
  for (const auto& line : missing_weights(config)) log_warn(line);
  for (const auto& line : task_parts(config).missing_files(config, true)) log_warn(line);
  for (const auto& line : data.warnings) log_warn(line);
  if (!resumed.warning.empty()) log_warn(resumed.warning);
  if (!resumed.anew.empty()) log_warn(resumed.anew);
  RunSummary summary;
  summary.parameters = count_parameters(*parts.model, true);
  summary.trainable = count_trainable(*parts.model);
  summary.num_ranks = world.size;
  summary.num_virtual_ranks = virtual_ranks_of(config, world).total;
  summary.data_threads = data_threads(config.train.loader, workers_of(world));
  summary.train_samples = data.samples;
  summary.samples_note = data.note;
  summary =
      complete_summary(summary, config, state_copies(config.optimizer), data.sample_bytes(device));
  require_batch(summary.steps_per_epoch, summary.samples_a_virtual_rank, config);
  if (data.note.empty()) check_resumable(resumed.state, data.samples);
  if (const auto note = schedule_note(config.scheduler); !note.empty()) log_warn(note);
  if (const auto note =
          last_batch_note(config, *parts.model, summary.samples_a_virtual_rank, world.size);
      !note.empty()) {
    log_warn(note);
  }
  if (const auto note = held_out_note(config); !note.empty()) log_warn(note);
  if (!config.recipe.empty()) fmt::print("# Configuration: {}\n", config.recipe);
  fmt::print("{}\n{}", write_yaml(config.effective), describe(summary, config, device));
  return 0;
}

}  // namespace lockstep::inline internal
