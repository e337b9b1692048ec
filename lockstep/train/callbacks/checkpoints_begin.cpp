// The begin of a run that saves checkpoints: their ranking, and the best file of weights of the run
// that goes on.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/log_lines.h"
#include "lockstep/train/task/task.h"

namespace lockstep::inline internal {
namespace {

/// The figure at the end of an epoch: the first one. A later one is of a run that ended within the
/// next epoch.
std::optional<MetricPoint> figure_of(const TrainingState& state, int64_t epoch) {
  const auto point = std::find_if(state.history.begin(), state.history.end(),
                                  [&](const MetricPoint& one) { return one.epoch == epoch; });
  return point == state.history.end() ? std::nullopt : std::optional(*point);
}

std::vector<EpochWeights> earlier_epochs(const TrainingState& state) {
  std::vector<EpochWeights> epochs;
  for (int64_t epoch = 1; epoch <= state.epoch; ++epoch) {
    const auto figure = figure_of(state, epoch);
    epochs.push_back({epoch, figure ? figure->value : kUnevaluated});
  }
  return epochs;
}

/// Returns whether the other values of the same metric were better in the run that goes on.
bool begin_ranking(Trainer& trainer) {
  auto& state = trainer.state();
  const bool was_higher = state.higher_is_better;
  if (trainer.config().system.val_while_train) {
    const auto& figure = trainer.config().metric.main_indicator;
    rank_by(state, figure, is_higher_better(trainer.task(), figure));
  } else {
    rank_by(state, "train_loss", false);
  }
  return state.best && state.higher_is_better != was_higher;
}

}  // namespace

void Checkpoints::on_start(Trainer& trainer) {
  auto& state = trainer.state();
  const auto& config = trainer.config();
  state.model = config.model.name();
  state.seed = static_cast<uint64_t>(config.system.seed);
  const bool turned = begin_ranking(trainer);
  changed_ = turned;
  if (state.step > 0) saved_step_ = state.step;
  if (trainer.rank() != 0) return;
  if (config.train.weights_format != "none") {
    weights_.emplace(config.train.ckpt_save_dir, config.train.weights_format, keep_policy(trainer),
                     earlier_epochs(state), fence_);
  }
  const bool lost = weights_ && state.best && !std::filesystem::exists(weights_->best_path());
  if (turned || lost) name_best_anew(state, turned);
}

/// On rank 0. `turned`: the files of the run that goes on were kept by the other direction. Else
/// best.EXT is missing.
void Checkpoints::name_best_anew(const TrainingState& state, bool turned) {
  const std::string file_note = name_best_file(*state.best, state);
  const std::string best = fmt::format("the best so far is {}, of epoch {}",
                                       python_float(state.best->value), state.best->epoch);
  const auto warn = [&](const std::string& text) {
    log_.write(Severity::kWarning, kTrainLogger, state.metric + ": " + text + file_note);
  };
  if (turned) {
    const bool higher = state.higher_is_better;
    warn(fmt::format("{} is better now, and {} was in the run that goes on: {}",
                     higher ? "more" : "less", higher ? "less" : "more", best));
  } else if (!file_note.empty()) {
    warn(best + ", and there is no file of its weights");
  }
}

/// Returns for the log of which epoch the best file of weights is, if it cannot be that of `best`.
std::string Checkpoints::name_best_file(const MetricPoint& best, const TrainingState& state) {
  if (!weights_) return "";
  if (figure_of(state, best.epoch) == best && weights_->name_best(best.epoch)) return "";
  const std::string name = weights_->best_path().filename().string();
  const auto kept = weights_->name_best_kept();
  if (!kept) return fmt::format("; {} will be that of the best epoch from now on", name);
  return fmt::format("; {} is that of epoch {}, the best that was kept", name, *kept);
}

}  // namespace lockstep::inline internal
