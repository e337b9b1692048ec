#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "lockstep/base/counted.h"
#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/data/synthetic_note.h"
#include "lockstep/error.h"
#include "lockstep/observe/curves.h"
#include "lockstep/progress.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/evaluation.h"
#include "lockstep/train/callbacks/events.h"
#include "lockstep/train/callbacks/recipe_events.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/callbacks/step_log.h"
#include "lockstep/train/compute_device.h"
#include "lockstep/train/config/yaml_writer.h"
#include "lockstep/train/disk_work.h"
#include "lockstep/train/fetch/weights.h"
#include "lockstep/train/log/training_log.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/optim/parameter_groups.h"
#include "lockstep/train/rank_change.h"
#include "lockstep/train/results_folder.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/run.h"
#include "lockstep/train/run_parts.h"
#include "lockstep/train/run_summary.h"
#include "lockstep/train/same_on_ranks.h"
#include "lockstep/train/schedule/schedule.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/signals.h"
#include "lockstep/train/task/task_parts.h"
#include "lockstep/training_checkpoint.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr auto kName = "lockstep.train";

std::chrono::seconds disk_limit(const Config& config) {
  return std::chrono::seconds(config.train.disk_timeout_s);
}

struct PreparedFolder {
  fs::path moved;                  ///< New place of an earlier run's results.
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
  WriterFence::refuse_if_replaced(dir, world.job_id, world.generation, world.generation_token);
  // Otherwise another run's checkpoints would be counted, and deleted, as this one's.
  const bool goes_on =
      own_results || (!parts.resumed.from.empty() && is_checkpoint_of(parts.resumed.from, dir));
  if (!goes_on) prepared.moved = move_earlier_results(dir);
  make_folder(dir);
  const bool stays = prepared.moved.empty() || prepared.moved.parent_path() == without_slash(dir);
  if (!prepared.lock || !stays) prepared.lock = hold_folder(config, world);
  prepared.fence = mark_results(config, world);
  write_file_atomically(dir / "train_config.yaml", config.source);
  write_file_atomically(dir / "args.yaml", write_yaml(config.effective));
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

void log_loader(TrainingLog& log, const DataParts& data, bool training, const World& world) {
  for (const auto& note : data.notes) log.info(kDataLogger, note);
  for (const auto& line : data.warnings) log.write(Severity::kWarning, kDataLogger, line);
  const int64_t samples = data.samplers.front().num_samples() * std::ssize(data.samplers);
  log.info("lockstep.data",
           fmt::format("Creating dataloader (training={}) for device {}. Number of data samples: "
                       "{} per device ({} total).",
                       training ? "True" : "False", world.rank, samples,
                       data.samplers.front().num_samples() * data.samplers.front().num_parts()));
}

/// States the conditions for the same bits on another number of ranks.
std::string virtual_ranks_line(const VirtualRankRange& virtual_ranks, int ranks, int threads) {
  const int least = virtual_ranks.total / ranks;
  const std::string each = virtual_ranks.total % ranks == 0
                               ? std::to_string(least)
                               : fmt::format("{} or {}", least, least + 1);
  return fmt::format(
      "Virtual ranks: {}, {} on each rank, intra-op threads: {}. Any number of ranks up to {} "
      "gives "
      "the same bits with the same parallel.virtual_ranks, parallel.threads and kind of processor.",
      virtual_ranks.total, each, threads, virtual_ranks.total);
}

void warn_of_data(TrainingLog& log, const Config& config) {
  const bool with_eval = config.system.val_while_train;
  for (const auto& line : task_parts(config).missing_files(config, with_eval)) {
    log.write(Severity::kWarning, kDataLogger, line);
  }
  if (config.train.dataset.own || config.train.dataset.type != "Cifar10Dataset") return;
  const auto data_dir = find_cifar10(config.train.dataset.data_dirs.front());
  if (is_synthetic(data_dir)) {
    log.write(Severity::kWarning, kDataLogger, synthetic_warning(data_dir));
  }
}

/// Printed at the start, so that a user can watch the run.
std::string results_line(const Config& config) {
  const auto& dir = config.train.ckpt_save_dir;
  return fmt::format(
      "Results: {} (log_0.txt, metrics.jsonl, events.jsonl, result.log; checkpoints: latest, best)",
      dir.string());
}

/// For a resumed run. A step has two numbers: that of the run, and that of the step lines, which
/// depends on the ranks.
std::string resume_line(const Config& config, const TrainingState& state, const Trainer& trainer) {
  if (trainer.has_steps_left()) {
    const auto line = fmt::format(
        "Resume train from epoch: {}, step: {} of the run (as metrics.jsonl and checkpoints count)",
        state.epoch + 1, state.step + 1);
    if (state.batch_in_epoch == 0) return line;
    return fmt::format("{}, after [{}/{}] of the epoch", line, state.batch_in_epoch,
                       trainer.steps_per_epoch());
  }
  const int64_t epochs = config.scheduler.num_epochs;
  if (trainer.stopped_early() && state.early_stopping) {
    return fmt::format(
        "There is nothing left to train: {} had not improved in {} "
        "(train.early_stopping)",
        state.early_stopping->metric, counted(state.early_stopping->waited, "evaluation"));
  }
  const std::string done =
      state.epoch >= epochs
          ? fmt::format("{} of {} (scheduler.num_epochs)", counted(state.epoch, "epoch"), epochs)
          : fmt::format("{} of {} (train.max_steps)", counted(state.step, "step"),
                        config.train.max_steps);
  return fmt::format("There is nothing left to train: the checkpoint has {}", done);
}

void log_start(TrainingLog& log, const Config& config, const RunParts& parts, const World& world,
               Trainer& trainer) {
  warn_of_data(log, config);
  const bool again = world.generation > 1 && !parts.resumed.from.empty();
  if (!again) {
    log_loader(log, parts.train, true, world);
    if (parts.eval) log_loader(log, *parts.eval, false, world);
  }
  if (!parts.resumed.warning.empty()) {
    log.write(Severity::kWarning, kName, parts.resumed.warning);
  }
  if (!parts.resumed.from.empty()) {
    log.info(kName, fmt::format("Loaded checkpoint {}\n{}", parts.resumed.from.string(),
                                resume_line(config, trainer.state(), trainer)));
    if (parts.resumed.state.seed != static_cast<uint64_t>(config.system.seed)) {
      log.write(Severity::kWarning, kName,
                fmt::format("system.seed is {}, the checkpoint's was {}: the data come in another "
                            "order now",
                            config.system.seed, parts.resumed.state.seed));
    }
  }
  if (const auto line = rate_line(config, trainer.virtual_ranks().total); !line.empty()) {
    log.info(kName, line);
  }
  if (const auto line = groups_line(config.optimizer, trainer.weights()); !line.empty()) {
    log.info(kName, line);
  }
  if (!trainer.dealing_note().empty()) log.info(kName, trainer.dealing_note());
  if (const auto note = schedule_note(config.scheduler); !note.empty()) {
    log.write(Severity::kWarning, kName, note);
  }
  if (!trainer.averaging_note().empty()) {
    log.write(
        Severity::kWarning, kName,
        fmt::format("the checkpoint's unsent gradients are lost: {}", trainer.averaging_note()));
  }
  if (world.rank == 0) log.info(kName, results_line(config));
  if (!trainer.has_steps_left()) return;  // no banner without training to come
  BannerFacts facts;
  facts.total_parameters = count_parameters(*parts.model, true);
  facts.trainable_parameters = count_trainable(*parts.model);
  facts.num_ranks = world.size;
  facts.num_virtual_ranks = trainer.virtual_ranks().total;
  facts.steps_per_epoch = trainer.steps_per_epoch();
  log.info(kName,
           again ? restart_line(config, facts, world.generation) : training_banner(config, facts));
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

/// The next command to type.
std::string next_step(const Config& config, StopReason reason) {
  if (reason == StopReason::kEpochsDone || reason == StopReason::kEarlyStopping) {
    return "--eval to evaluate the weights";
  }
  if (reason != StopReason::kMaxSteps) return "-o model.resume=True to go on";
  return fmt::format(
      "--eval to evaluate the weights, or with -o model.resume=True train.max_steps=0 to go on to "
      "the "
      "end of epoch {}",
      config.scheduler.num_epochs);
}

/// Prints the places of results and the next command, if a command started the run: its end on
/// rank 0.
void log_end(TrainingLog& log, const Trainer& trainer, bool by_command) {
  const auto& config = trainer.config();
  const auto& dir = config.train.ckpt_save_dir;
  const bool best = fs::exists(dir / "best");
  log.plain(fmt::format("Checkpoint: {}{}", (dir / "latest").string(),
                        best ? fmt::format(" (best: {})", (dir / "best").string()) : ""));
  log.plain(fmt::format("Log: {}, metrics: {}, curves: {}", (dir / "log_0.txt").string(),
                        (dir / "metrics.jsonl").string(), (dir / "result.svg").string()));
  if (fs::exists(dir / "confusion.svg")) {
    log.plain(
        fmt::format("Classes that are taken for others: {}", (dir / "confusion.svg").string()));
  }
  if (!by_command) return;
  if (trainer.stop_reason() == StopReason::kMembership) return;  // the user need not type anything
  log.plain(
      fmt::format("Next: the same command with {}", next_step(config, trainer.stop_reason())));
}

/// On rank 0, at every end of the run. A failure is only a warning: the curves are optional.
void draw_curves(TrainingLog& log, const Config& config, const WriterFence& fence) {
  const auto& dir = config.train.ckpt_save_dir;  // the checkpoint is in it by now
  try {
    fence.check();
    write_curves(dir / "metrics.jsonl", dir / "result.svg", config.model.name());
  } catch (const std::exception& error) {
    log.write(Severity::kWarning, kName, fmt::format("no curves: {}", error.what()));
  }
}

StopReason fit_and_draw(Trainer& trainer, TrainingLog& log, const Witnesses& witnesses,
                        const WriterFence& fence) {
  try {
    const StopReason reason = trainer.fit();
    if (trainer.rank() == 0) draw_curves(log, trainer.config(), fence);
    return reason;
  } catch (const std::exception& error) {
    witnesses.events->failed(trainer, error.what());
    for (const auto& callback : witnesses.named) callback->failed(error.what());
    if (trainer.rank() == 0) draw_curves(log, trainer.config(), fence);
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
  const SignalWatch signals;
  PreparedFolder folder;  // they outlive the trainer, whose callbacks write into them
  std::optional<TrainingLog> kept_log;
  Trainer trainer(
      {config, world.rank, world.size, group, parts.model, *parts.optimizer, *parts.task,
       *parts.train.loader, parts.train.samplers, [&] { return signals.pending(); },
       parts.masters.get(), parts.ema.get(), [&] { return signals.take_save_request(); },
       job_goes_on, parts.optimized, extras.training_step},
      parts.resumed.state, load_averaging(parts.resumed.from, world.rank));
  folder = prepare_folder(config, parts, world, own_results, group);
  TrainingLog& log = kept_log.emplace(
      TrainingLog::Options{config.train.ckpt_save_dir / fmt::format("log_{}.txt", world.rank),
                           world.rank == 0, parse_severity(config.system.log_level)});
  if (!folder.moved.empty()) {
    log.info(kName, fmt::format("Results of an earlier run are now in {}", folder.moved.string()));
  }
  if (!device.is_cpu()) log.info(kName, fmt::format("Device: {}", device.str()));
  const auto precision = precision_line(config, device.type());
  if (!precision.empty()) log.info(kName, precision);
  if (config.parallel.virtual_ranks > 0)
    log.info(kName, virtual_ranks_line(trainer.virtual_ranks(), world.size, threads));
  if (!virtual_ranks_note.empty()) log.write(Severity::kWarning, kName, virtual_ranks_note);
  log_failure(log, kName, [&] {
    log_start(log, config, parts, world, trainer);
    const auto witnesses =
        add_callbacks(trainer, log, parts, folder.fence, world, own_results, extras);
    train_logged(trainer, log, witnesses, folder.fence, world, extras.by_command);
  });
  return exit_status_of(trainer.stop_reason());
}

}  // namespace lockstep
