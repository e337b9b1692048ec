#include "lockstep/train/callbacks/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/checkpoint/module_state.h"
#include "lockstep/checkpoint/training_checkpoint.h"
#include "lockstep/train/resume.h"

namespace lockstep {
namespace {

/// The best entries of the run, best first.
std::vector<MetricPoint> ranked(const TrainingState& state) {
  auto points = state.history;
  std::stable_sort(points.begin(), points.end(), [&](const MetricPoint& a, const MetricPoint& b) {
    return state.higher_is_better ? a.value > b.value : a.value < b.value;
  });
  return points;
}

bool writes_weights(const Config& config) {
  return config.train.weights_format != "none";
}

/// Of the folders.
KeepPolicy checkpoint_policy(const Config& config) {
  KeepPolicy policy = keep_policy(config);
  if (writes_weights(config)) {
    policy.keep = Keep::kLatest;
    policy.count = 1;
  }
  return policy;
}

std::vector<EpochWeights> earlier_epochs(const TrainingState& state) {
  std::vector<EpochWeights> epochs;
  for (int64_t epoch = 1; epoch <= state.epoch; ++epoch) {
    const auto point = std::find_if(state.history.begin(), state.history.end(),
                                    [&](const MetricPoint& one) { return one.epoch == epoch; });
    epochs.push_back({epoch, point == state.history.end() ? kUnjudged : point->value});
  }
  return epochs;
}

}  // namespace

KeepPolicy keep_policy(const Config& config) {
  KeepPolicy policy;
  const auto& name = config.system.ckpt_save_policy;
  policy.keep = name == "top_k" ? Keep::kTopK : name == "latest_k" ? Keep::kLatest : Keep::kAll;
  policy.count = static_cast<int>(config.system.ckpt_max_keep);
  policy.higher_is_better = config.system.val_while_train;
  return policy;
}

void Checkpoints::on_start(Trainer& trainer) {
  auto& state = trainer.state();
  const auto& config = trainer.config();
  state.model = config.model.name();
  state.seed = static_cast<uint64_t>(config.system.seed);
  const bool evaluates = config.system.val_while_train;
  rank_by(state, evaluates ? config.metric.main_indicator : "train_loss", evaluates);
  if (state.step > 0) saved_step_ = state.step;
  if (trainer.rank() == 0 && writes_weights(config)) {
    weights_.emplace(config.train.ckpt_save_dir, config.train.weights_format, keep_policy(config),
                     earlier_epochs(state));
  }
}

/// What a run that goes on judged first is the epoch before.
void Checkpoints::on_begin(Trainer& trainer) {
  if (!changed_) return;
  save_epoch_weights(trainer, trainer.state().epoch);
  save(trainer);
}

void Checkpoints::on_step(Trainer& trainer, const StepReport& report) {
  const int64_t every = trainer.config().train.ckpt_save_steps;
  if (every == 0 || !report.updated || trainer.state().step % every != 0) return;
  if (report.step_in_epoch < report.steps_per_epoch) save(trainer);  // else the epoch's end does
}

void Checkpoints::record(Trainer& trainer, double value) {
  changed_ = true;
  value_ = value;
  if (record_metric(trainer.state(), value)) new_best_ = true;
}

void Checkpoints::on_evaluation(Trainer& trainer, const EvalResult& result) {
  record(trainer, result.metric(trainer.config().metric.main_indicator));
}

void Checkpoints::on_epoch(Trainer& trainer, const EpochReport& report) {
  if (!trainer.config().system.val_while_train) record(trainer, report.loss);
  save_epoch_weights(trainer, report.epoch);
  save(trainer);
}

/// Those of an epoch that was judged are those that were judged: with a moving average that.
void Checkpoints::save_epoch_weights(Trainer& trainer, int64_t epoch) {
  const auto value = std::exchange(value_, std::nullopt);
  if (!weights_) return;
  std::optional<AveragedWeights> average;
  if (value) average.emplace(trainer);
  weights_->save_epoch({epoch, value.value_or(kUnjudged)}, module_tensors(trainer.weights()));
}

void Checkpoints::save(Trainer& trainer) {
  auto& state = trainer.state();
  auto extra = averaging_files(trainer.averaging_state());
  if (trainer.ema()) extra[kEmaFile] = {trainer.ema()->state(), {}};
  if (trainer.rank() == 0) {
    if (new_best_ && weights_) {  // first: who goes on from the checkpoint takes it for written
      const AveragedWeights average(trainer);
      weights_->save_best(module_tensors(trainer.weights()));
    }
    state.rng = rng_bytes();
    const auto folder =
        save_checkpoint(trainer.config().train.ckpt_save_dir, trainer.weights(),
                        trainer.optimizer(), state, checkpoint_policy(trainer.config()), extra);
    if (new_best_) {
      log_.info(kTrainLogger, fmt::format("=> Best {}: {}, checkpoint saved.", state.metric,
                                          python_float(state.best->value)));
    } else {
      log_.write(Severity::kDebug, kTrainLogger, fmt::format("Saved {}", folder.string()));
    }
  }
  trainer.group().barrier();
  saved_step_ = state.step;
  changed_ = new_best_ = false;
}

void Checkpoints::on_end(Trainer& trainer) {
  if (saved_step_ != trainer.state().step || changed_) save(trainer);
  if (trainer.rank() == 0) report_end(trainer);
}

void Checkpoints::report_end(Trainer& trainer) {
  const auto& state = trainer.state();
  const auto reason = trainer.stop_reason();
  if (reason == StopReason::kSigterm || reason == StopReason::kSigint) {
    log_.info(kTrainLogger,
              fmt::format("{}: stopped after step {}, checkpoint saved.",
                          reason == StopReason::kSigterm ? "SIGTERM" : "SIGINT", state.step));
    return;
  }
  if (!state.best) {
    log_.info(kTrainLogger, "Training completed!");
    return;
  }
  log_.info(kTrainLogger, fmt::format("=> Best {}: {} \nTraining completed!", state.metric,
                                      python_float(state.best->value)));
  const bool any = weights_ ? !weights_->kept().empty() : !state.history.empty();
  if (any && keep_policy(trainer.config()).keep == Keep::kTopK) {
    log_.info(kTrainLogger, top_table(trainer));
  }
}

std::string Checkpoints::top_table(Trainer& trainer) const {
  const auto& state = trainer.state();
  std::string table = fmt::format("Top K checkpoints:\n{}\tcheckpoint", state.metric);
  const auto line = [&](double value, const std::filesystem::path& path) {
    table += fmt::format("\n{:.4f}\t{}", value, path.string());
  };
  if (weights_) {
    for (const auto& epoch : weights_->kept()) line(epoch.value, weights_->path_of(epoch.epoch));
    return table;
  }
  const auto points = ranked(state);
  const auto count = static_cast<size_t>(keep_policy(trainer.config()).count);
  for (size_t i = 0; i < std::min(points.size(), count); ++i) {
    line(points[i].value,
         trainer.config().train.ckpt_save_dir / fmt::format("step_{:06}", points[i].step));
  }
  return table;
}

}  // namespace lockstep
