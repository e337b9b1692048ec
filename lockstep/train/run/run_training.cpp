#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/checkpoint/writer.h"
#include "lockstep/error.h"
#include "lockstep/observe/curves.h"
#include "lockstep/progress.h"
#include "lockstep/train/batch_share.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/evaluation.h"
#include "lockstep/train/callbacks/events.h"
#include "lockstep/train/callbacks/recipe_events.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/callbacks/step_log.h"
#include "lockstep/train/compute_device.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/config/yaml_writer.h"
#include "lockstep/train/disk_work.h"
#include "lockstep/train/fetch/weights.h"
#include "lockstep/train/log/training_log.h"
#include "lockstep/train/results_folder.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/run/run.h"
#include "lockstep/train/run/run_log.h"
#include "lockstep/train/run/run_parts.h"
#include "lockstep/train/run_summary.h"
#include "lockstep/train/same_on_ranks.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/signals.h"
#include "lockstep/training_checkpoint.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr auto kName = "lockstep.train";

std::chrono::seconds disk_limit(const Config& config) {
  return std::chrono::seconds(config.train.disk_timeout_s);
}

struct PreparedFolder {
  fs::path moved;                  ///< New place of an earlier run's results.
  fs::path moved_names;            ///< That of a classes.txt of other names.
  std::optional<FolderLock> lock;  ///< Rank 0's, excludes a second run.
  WriterFence fence;               ///< Rank 0's, excludes earlier generations.
};

/// Locks the folder as it is. In a later generation an earlier rank 0 may be cut off and still
/// alive. It must not stop the run; its host ends it.
std::optional<FolderLock> hold_folder(const Config& config, const World& world) {
  constexpr auto kEnding = std::chrono::seconds(30);
  const auto& dir = config.train.ckpt_save_dir;
  if (world.generation == 1) return hold_results_folder(dir, Deadline::after(kEnding));
  return fs::is_directory(dir) ? FolderLock::take(dir) : std::nullopt;
}

/// On rank 0.
PreparedFolder prepare_on_disk(const Config& config, const RunParts& parts, const World& world,
                               bool own_results) {
  const auto& dir = config.train.ckpt_save_dir;
  PreparedFolder prepared;
  prepared.lock = hold_folder(config, world);
  Writer(dir, world.job_id, world.generation, world.generation_token).check_before_mark();
  // Otherwise another run's checkpoints would be counted, and deleted, as this one's.
  const bool goes_on =
      own_results || (!parts.resumed.from.empty() && is_checkpoint_of(parts.resumed.from, dir));
  if (!goes_on) prepared.moved = move_earlier_results(dir);
  check_class_names(dir, parts.train.classes);
  make_folder(dir);
  const bool stays = prepared.moved.empty() || prepared.moved.parent_path() == without_slash(dir);
  if (!prepared.lock || !stays) prepared.lock = hold_folder(config, world);
  prepared.fence = mark_results(config, world);
  write_file_atomically(dir / "train_config.yaml", config.source);
  write_file_atomically(dir / "args.yaml", write_yaml(config.effective));
  prepared.moved_names = write_class_names(dir, parts.train.classes);
  return prepared;
}

/// Rank 0 prepares the folder, then all continue.
PreparedFolder prepare_folder(const Config& config, const RunParts& parts, const World& world,
                              bool own_results, ProcessGroup& group) {
  PreparedFolder prepared;
  do_disk_work(group, "the results folder is made ready", disk_limit(config), [&] {
    if (world.rank == 0) prepared = prepare_on_disk(config, parts, world, own_results);
  });
  make_folder(config.train.ckpt_save_dir);  // hosts may have disks of their own
  return prepared;
}

MetricsLabels labels_of(const World& world) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return {world.job_id, host, world.rank};
}

/// The registered callbacks that the configuration names.
std::vector<std::shared_ptr<EventCallback>> make_named_callbacks(const Config& config) {
  std::vector<std::shared_ptr<EventCallback>> made;
  for (const auto& part : config.callbacks) {
    made.push_back(std::make_shared<EventCallback>(part.make()));
  }
  return made;
}

/// What learns of a failure.
struct Witnesses {
  std::shared_ptr<Events> events;
  std::vector<std::shared_ptr<EventCallback>> named;
};

Witnesses add_callbacks(Trainer& trainer, TrainingLog& log, RunParts& parts,
                        const WriterFence& fence, const World& world, bool own_results,
                        const RunExtras& extras) {
  const auto results = std::make_shared<Results>(labels_of(world), fence, parts.train.classes);
  auto events = std::make_shared<Events>(labels_of(world), results, own_results);
  trainer.add(std::make_shared<StepLog>(log));
  trainer.add(results);  // Results before Checkpoints: it then has a checkpoint's steps
  trainer.add(std::make_shared<Checkpoints>(log, fence));
  const auto named = make_named_callbacks(trainer.config());
  for (const auto& callback : named) trainer.add(callback);
  for (const auto& callback : extras.callbacks) trainer.add(callback);
  if (parts.eval) {  // last: its failure costs no epoch
    trainer.add(std::make_shared<Evaluation>(*parts.eval->loader, parts.eval->samplers));
  }
  trainer.add(events);
  return {events, named};
}

/// On rank 0, at every end of the run. A failure is only a warning: the curves are optional.
void draw_curves(TrainingLog& log, const Trainer& trainer, const WriterFence& fence) {
  const auto& config = trainer.config();
  const auto& dir = config.train.ckpt_save_dir;  // the checkpoint is in it by now
  try {
    fence.check();
    write_curves(dir / "metrics.jsonl", dir / "result.svg", config.model.name(),
                 trainer.log_names());
  } catch (const std::exception& error) {
    log.write(Severity::kWarning, kName, fmt::format("no curves: {}", error.what()));
  }
}

StopReason fit_and_draw(Trainer& trainer, TrainingLog& log, const Witnesses& witnesses,
                        const WriterFence& fence) {
  try {
    const StopReason reason = trainer.fit();
    if (trainer.rank() == 0) draw_curves(log, trainer, fence);
    return reason;
  } catch (const std::exception& error) {
    witnesses.events->failed(trainer, error.what());
    for (const auto& callback : witnesses.named) callback->failed(error.what());
    if (trainer.rank() == 0) draw_curves(log, trainer, fence);
    throw;
  }
}

int exit_status_of(StopReason reason) {
  const int signal = signal_of(reason);
  return signal == 0 ? 0 : 128 + signal;
}

/// Weights that differ between ranks spoil a run, whose checkpoints hold rank 0's. Errors:
/// kMismatch, on every rank.
void require_same(const WeightsComparison& weights) {
  if (weights.same) return;
  throw Error(ErrorCode::kMismatch,
              weights.line +
                  ": ranks that train together must end with the same bits, so something "
                  "computed wrongly, or hosts have processors of different kinds");
}

/// After a signal time may be short, and other ranks gone: an error is only logged.
void compare_after_signal(Trainer& trainer, TrainingLog& log) {
  try {
    require_same(compare_weights(weights_digest(trainer.model()), trainer.group()));
  } catch (const Error& error) {
    const bool differ = error.code() == ErrorCode::kMismatch;
    log.write(differ ? Severity::kError : Severity::kDebug, kName, error.what());
  }
}

/// From the first step to the last line of the log.
void train_logged(Trainer& trainer, TrainingLog& log, const Witnesses& witnesses,
                  const WriterFence& fence, const World& world, bool by_command) {
  const StopReason reason = fit_and_draw(trainer, log, witnesses, fence);
  if (exit_status_of(reason) != 0) {
    if (world.rank == 0) log_end(log, trainer, by_command);
    return compare_after_signal(trainer, log);
  }
  const auto weights = compare_weights(weights_digest(trainer.model()), trainer.group());
  if (world.rank == 0 && weights.same) log.plain(weights.line);
  if (world.rank == 0) log_end(log, trainer, by_command);
  require_same(weights);
}

}  // namespace

int run_training(const Config& given, World world, const RunExtras& extras) {
  expect_steps();
  Config config = given;
  const std::string virtual_ranks_note = leave_too_few_virtual_ranks(config, world);
  check_world(config, world);
  const std::string batch_note = share_global_batch(config, world);
  check_results_folder(config.train.ckpt_save_dir);
  disown_results(config, world);
  const auto device = take_compute_device(config, world);
  const int threads = threads_of(config.parallel, world);
  set_threads(threads);
  auto group = ProcessGroup::create(world, group_options(config.parallel));
  check_same_config(given, group);
  // After the ranks have met: this wait may exceed the timeout of the rendezvous.
  do_disk_work(group, "weights to start from are downloaded", disk_limit(config),
               [&] { fetch_pretrained(config, Deadline::after(disk_limit(config))); });
  WriterFence fence;
  const bool own_results = finds_own_results(config, world, group, &fence);
  RunParts parts;
  do_disk_work(group, "data are indexed and weights are read", disk_limit(config),
               [&] { parts = make_parts(config, world, device, own_results, extras); });
  check_same_samples(samples_of(parts.train), parts.eval ? samples_of(*parts.eval) : DataSamples(),
                     group);
  check_same_teacher(parts.task->teacher_digest(), group);
  check_same_start(parts.resumed.state.step, parts.resumed.from, group);
  const std::string samples_note = changed_samples_note(parts.resumed.state, parts.train.digest);
  parts.resumed.state.samples_digest = parts.train.digest;
  const SignalWatch signals;
  PreparedFolder folder;  // they outlive the trainer, whose callbacks write into them
  std::optional<TrainingLog> kept_log;
  Trainer trainer({config, world.rank, world.size, group, parts.model, *parts.optimizer,
                   *parts.task, *parts.train.loader, parts.train.samplers,
                   [&] { return signals.pending(); }, parts.masters.get(), parts.ema.get(),
                   [&] { return signals.take_save_request(); }, job_goes_on, parts.optimized,
                   extras.training_step, parts.log_names, parts.train.with_replacement},
                  parts.resumed.state, load_averaging(parts.resumed.from, world.rank));
  folder = prepare_folder(config, parts, world, own_results, group);
  TrainingLog& log = kept_log.emplace(
      TrainingLog::Options{config.train.ckpt_save_dir / fmt::format("log_{}.txt", world.rank),
                           world.rank == 0, parse_severity(config.system.log_level)});
  if (!folder.moved.empty()) {
    log.info(kName, fmt::format("Results of an earlier run are now in {}", folder.moved.string()));
  }
  if (!folder.moved_names.empty()) {
    log.write(Severity::kWarning, kName,
              fmt::format("{}/classes.txt had other names of classes than the data have now; it is "
                          "now {}",
                          without_slash(config.train.ckpt_save_dir).string(),
                          folder.moved_names.string()));
  }
  const auto unwritten = unwritten_names_note(config.train.ckpt_save_dir, parts.train.classes);
  if (!unwritten.empty()) log.write(Severity::kWarning, kName, unwritten);
  if (!config.recipe.empty()) {
    log.info(kName, fmt::format("Configuration: {}", config.recipe));
  }
  if (!device.is_cpu()) log.info(kName, fmt::format("Device: {}", device.str()));
  const auto precision = precision_line(config, device.type());
  if (!precision.empty()) log.info(kName, precision);
  if (config.parallel.virtual_ranks > 0)
    log.info(kName, virtual_ranks_line(trainer.virtual_ranks(), world.size, threads));
  if (!virtual_ranks_note.empty()) log.write(Severity::kWarning, kName, virtual_ranks_note);
  if (!batch_note.empty()) log.write(Severity::kWarning, kName, batch_note);
  if (!samples_note.empty()) log.write(Severity::kWarning, kName, samples_note);
  if (const auto note = held_out_note(config); !note.empty()) {
    log.write(Severity::kWarning, kName, note);
  }
  log_failure(log, kName, [&] {
    log_start(log, config, parts, world, trainer);
    const auto witnesses =
        add_callbacks(trainer, log, parts, folder.fence, world, own_results, extras);
    train_logged(trainer, log, witnesses, folder.fence, world, extras.by_command);
  });
  return exit_status_of(trainer.stop_reason());
}

}  // namespace lockstep::inline internal
