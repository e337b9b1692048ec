#include "lockstep/train/run/run_log.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "lockstep/base/counted.h"
#include "lockstep/base/env.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/data/synthetic_note.h"
#include "lockstep/models/build/build_model.h"
#include "lockstep/train/batch_share.h"
#include "lockstep/train/last_batch.h"
#include "lockstep/train/log_lines.h"
#include "lockstep/train/optim/parameter_groups.h"
#include "lockstep/train/rank_change.h"
#include "lockstep/train/schedule/schedule.h"
#include "lockstep/train/task_parts.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

void log_loader(TrainingLog& log, const DataParts& data, bool training, const World& world) {
  for (const auto& note : data.notes) log.info(kDataLogger, note);
  for (const auto& line : data.warnings) log.write(Severity::kWarning, kDataLogger, line);
  log.info(kDataLogger, loader_line(data, training, world.rank));
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

}  // namespace

std::string loader_line(const DataParts& data, bool training, int rank) {
  int64_t samples = 0;
  for (const auto& sampler : data.samplers) {
    samples += training ? sampler.num_samples() : sampler.num_unpadded();
  }
  return fmt::format(
      "Creating dataloader (training={}) for device {}. Number of data samples: {} per device ({} "
      "total).",
      training ? "True" : "False", rank, samples, data.samples);
}

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

namespace {

/// A launcher or Slurm restarts a job also before its first checkpoint.
bool was_restarted(const World& world) {
  return world.generation > 1 || env_or("SLURM_RESTART_COUNT", "0") != "0";
}

}  // namespace

void log_start(TrainingLog& log, const Config& config, const RunParts& parts, const World& world,
               Trainer& trainer) {
  warn_of_data(log, config);
  const bool again = world.generation > 1 && !parts.resumed.from.empty();
  if (!again) {
    log_loader(log, parts.train, true, world);
    if (parts.eval) log_loader(log, *parts.eval, false, world);
  }
  if (!parts.resumed.warning.empty()) {
    log.write(Severity::kWarning, kTrainLogger, parts.resumed.warning);
  }
  if (!parts.resumed.anew.empty()) {
    log.write(was_restarted(world) ? Severity::kInfo : Severity::kWarning, kTrainLogger,
              parts.resumed.anew);
  }
  if (!parts.resumed.from.empty()) {
    log.info(kTrainLogger, fmt::format("Loaded checkpoint {}\n{}", parts.resumed.from.string(),
                                       resume_line(config, trainer.state(), trainer)));
    if (parts.resumed.state.seed != static_cast<uint64_t>(config.system.seed)) {
      log.write(Severity::kWarning, kTrainLogger,
                fmt::format("system.seed is {}, the checkpoint's was {}: the data come in another "
                            "order now",
                            config.system.seed, parts.resumed.state.seed));
    }
  }
  if (const auto line = batch_line(config, trainer.virtual_ranks().total); !line.empty()) {
    log.info(kTrainLogger, line);
  }
  if (const auto line = rate_line(config, trainer.virtual_ranks().total); !line.empty()) {
    log.info(kTrainLogger, line);
  }
  if (const auto line = groups_line(config.optimizer, trainer.weights()); !line.empty()) {
    log.info(kTrainLogger, line);
  }
  if (!trainer.dealing_note().empty()) log.info(kTrainLogger, trainer.dealing_note());
  if (const auto note = schedule_note(config.scheduler); !note.empty()) {
    log.write(Severity::kWarning, kTrainLogger, note);
  }
  if (const auto note =
          last_batch_note(config, *parts.model, trainer.samples_a_virtual_rank(), world.size);
      !note.empty()) {
    log.write(Severity::kWarning, kTrainLogger, note);
  }
  if (!trainer.averaging_note().empty()) {
    log.write(
        Severity::kWarning, kTrainLogger,
        fmt::format("the checkpoint's unsent gradients are lost: {}", trainer.averaging_note()));
  }
  if (world.rank == 0) log.info(kTrainLogger, results_line(config));
  if (!trainer.has_steps_left()) return;  // no banner without training to come
  RunSummary summary;
  summary.parameters = count_parameters(*parts.model, true);
  summary.trainable = count_trainable(*parts.model);
  summary.num_ranks = world.size;
  summary.num_virtual_ranks = trainer.virtual_ranks().total;
  summary.steps_per_epoch = trainer.steps_per_epoch();
  log.info(kTrainLogger, again ? restart_line(config, summary, world.generation)
                               : training_banner(config, summary));
}

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

}  // namespace lockstep::inline internal
