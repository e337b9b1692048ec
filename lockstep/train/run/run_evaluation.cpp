#include <fmt/format.h>

#include <filesystem>

#include "lockstep/amp/master_weights.h"
#include "lockstep/autocast.h"
#include "lockstep/base/folder.h"
#include "lockstep/checkpoint_folder.h"
#include "lockstep/error.h"
#include "lockstep/observe/confusion.h"
#include "lockstep/train/compute_device.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/evaluate.h"
#include "lockstep/train/log/training_log.h"
#include "lockstep/train/log_lines.h"
#include "lockstep/train/results_folder.h"
#include "lockstep/train/run/run.h"
#include "lockstep/train/same_on_ranks.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/task/task.h"
#include "lockstep/train/task_parts.h"
#include "lockstep/weights.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr auto kEvalLogger = "lockstep.eval";

/// The weights to evaluate, a file or a checkpoint: the configured ones, else the best of the run,
/// else its latest.
fs::path evaluated_weights(const Config& config) {
  if (!config.eval->ckpt_load_path.empty()) return config.eval->ckpt_load_path;
  const auto best = best_weights(config.train);
  return best.empty() ? find_checkpoint(config.train.ckpt_save_dir) : best;
}

/// A failure is only a warning: the figures are in the log.
void write_confused(const Config& config, const Task& task, const DataParts& data,
                    TrainingLog& log) {
  const Confusion* confusion = task.confusion();
  if (confusion == nullptr) return;
  const auto& dir = config.train.ckpt_save_dir;
  try {
    write_confusion(dir, "confusion_eval",
                    fmt::format("{}: {} samples", config.model.name(), confusion->samples()),
                    *confusion, data.classes);
  } catch (const Error& error) {
    log.write(Severity::kWarning, kEvalLogger,
              fmt::format("no confusion matrix: {}", error.what()));
  }
}

/// Evaluates, with its lines in the log.
void evaluate_logged(const Config& config, const World& world, const fs::path& path, Model& model,
                     DataParts& data, ProcessGroup& group, TrainingLog& log) {
  RunSummary summary;
  summary.parameters = count_parameters(model, true);
  summary.trainable = count_parameters(model);
  const int64_t num_batches =
      data.loader->num_batches(data.samplers.front().num_samples()) * std::ssize(data.samplers);
  log.info(kEvalLogger, fmt::format("Weights: {}", path.string()));
  for (const auto& note : data.notes) log.info(kDataLogger, note);
  for (const auto& line : data.warnings) log.write(Severity::kWarning, kDataLogger, line);
  log.info(kEvalLogger, evaluation_banner(config, summary, num_batches));
  const auto task = make_task(config, /*trains=*/false);
  EvalHooks hooks;
  hooks.disk_limit = std::chrono::seconds(config.train.disk_timeout_s);
  hooks.fault = [&](const std::string& line) { log.write(Severity::kWarning, kDataLogger, line); };
  hooks.evaluated = [&](const EvalState& state) {
    if (log.progress().active())
      log.progress().update(to_progress(state, virtual_ranks_of(config, world)));
  };
  const auto result = evaluate(model, *data.loader, data.samplers, group, *task,
                               config.system.amp_level_infer, hooks);
  log.progress().finish();
  for (const auto& line : result->lines) log.info(kEvalLogger, line);
  for (const auto& line : evaluation_warnings(*result)) {
    log.write(Severity::kWarning, kEvalLogger, line);
  }
  if (world.rank == 0) {
    log.info(kEvalLogger, fmt::format("Performance: {}", python_dict(result->metrics)));
    write_confused(config, *task, data, log);
  }
}

}  // namespace

int run_evaluation(const Config& config, World world) {
  if (!config.eval) {
    throw Error(ErrorCode::kInvalidArgument, "to evaluate, the configuration needs a section eval");
  }
  check_world(config, world);
  check_results_folder(config.train.ckpt_save_dir);  // the log is written there
  const auto device = take_compute_device(config, world);
  set_threads(threads_of(config.parallel, world));
  auto group = ProcessGroup::create(world, group_options(config.parallel));
  check_same_config(config, group);
  const auto path = weights_in(evaluated_weights(config), config.train.ema);
  auto model = make_model(without_pretrained(config.model), config.system.seed);
  load_weights(path, *model);
  const AmpLevel level = config.system.amp_level_infer;
  model->to(device);
  cast_module(*model, level, low_precision(device.type()));
  const auto virtual_ranks = virtual_ranks_of(config, world);
  auto data = make_data(config, virtual_ranks, false, workers_of(world), device);
  check_same_samples({}, {data.samplers.front().dataset_size(), data.digest}, group);
  make_folder(config.train.ckpt_save_dir);
  TrainingLog log({config.train.ckpt_save_dir / fmt::format("log_eval_{}.txt", world.rank),
                   world.rank == 0, parse_severity(config.system.log_level), true});
  log_failure(log, kEvalLogger,
              [&] { evaluate_logged(config, world, path, *model, data, group, log); });
  return 0;
}

}  // namespace lockstep::inline internal
