// The start of a run, which may rank its checkpoints otherwise than the run that goes on.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "lockstep/checkpoint/keep_policy.h"
#include "lockstep/checkpoint/staged_folder.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/kept_best.h"
#include "lockstep/train/disk_work.h"
#include "lockstep/training_checkpoint.h"
#include "lockstep/weights.h"

namespace lockstep::inline internal {
namespace {

std::vector<EpochWeights> earlier_epochs(const TrainingState& state) {
  std::vector<EpochWeights> epochs;
  for (int64_t epoch = 1; epoch <= state.epoch; ++epoch) {
    const auto point = std::find_if(state.history.begin(), state.history.end(),
                                    [&](const MetricPoint& one) { return one.epoch == epoch; });
    epochs.push_back({epoch, point == state.history.end() ? kUnevaluated : point->value});
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

/// Hosts without a shared disk may have states of different versions.
bool of_rank_0(ProcessGroup& group, bool turned) {
  int32_t value = turned ? 1 : 0;
  group.broadcast(&value, 1, DType::kInt32, 0).wait();
  return value != 0;
}

/// `files`: of weights, if there are any.
KeptWeights find_kept(const std::filesystem::path& dir, const std::optional<WeightFiles>& files,
                      const TrainingState& state) {
  KeptWeights kept;
  for (const CheckpointEntry& entry : list_checkpoints(dir, state.metric)) {
    if (entry.metric) kept.steps.insert(entry.step);
  }
  if (!files) return kept;
  for (const MetricPoint& point : state.history) {
    if (std::filesystem::exists(files->path_of(point.epoch))) kept.epochs.insert(point.epoch);
  }
  return kept;
}

/// The warning. `before`: the best of the whole history.
std::string turned_ranking(const TrainingState& state, const MetricPoint& before) {
  const bool higher = state.higher_is_better;
  const auto turned =
      fmt::format("{}: {} is better now, and {} was in the run that goes on: ", state.metric,
                  higher ? "more" : "less", higher ? "less" : "more");
  if (!state.best) {
    return turned + "no evaluated weights were kept, so the next ones are the best so far";
  }
  return turned +
         fmt::format("the best so far is {}, of epoch {}{}", python_float(state.best->value),
                     state.best->epoch,
                     state.best->value == before.value ? "" : "; better ones were not kept");
}

/// The warning, if epochs of the run that goes on were ranked by the figure `before`.
std::string other_figure(const std::string& before, const TrainingState& state,
                         const KeepPolicy& policy) {
  if (before.empty() || before == state.metric) return "";
  return fmt::format(
      "ranked by {} now, and by {} in the run that goes on: earlier epochs have no rank{}",
      state.metric, before,
      policy.keep == Keep::kAll
          ? ""
          : ", and their checkpoints are not kept as the best ones; copy those you need");
}

}  // namespace

void Checkpoints::on_start(Trainer& trainer) {
  auto& state = trainer.state();
  const auto& config = trainer.config();
  state.model = config.model.name();
  state.seed = static_cast<uint64_t>(config.system.seed);
  const std::string figure_before = state.history.empty() ? "" : state.metric;
  const bool turned = of_rank_0(trainer.group(), begin_ranking(trainer));
  changed_ = turned;
  if (state.step > 0) saved_step_ = state.step;
  if (trainer.rank() == 0 && config.train.weights_format != "none") {
    weights_.emplace(config.train.ckpt_save_dir, config.train.weights_format, keep_policy(trainer),
                     earlier_epochs(state), fence_);
  }
  if (turned) take_best_kept(trainer);
  const auto warning = other_figure(figure_before, state, keep_policy(trainer));
  if (trainer.rank() == 0 && !warning.empty()) {
    log_.write(Severity::kWarning, kTrainLogger, warning);
  }
}

/// Collective. The run that goes on kept its weights by the other direction, so those of the best
/// point may be gone. It would then be a mark that no weights have.
void Checkpoints::take_best_kept(Trainer& trainer) {
  auto& state = trainer.state();
  const auto before = state.best;
  MetricPoint best{.value = std::numeric_limits<double>::quiet_NaN()};  // only rank 0's disk counts
  do_disk_work(trainer.group(), "the best weights of the run are looked for",
               std::chrono::seconds(trainer.config().train.disk_timeout_s), [&] {
                 if (trainer.rank() == 0) best = name_best_kept(trainer).value_or(best);
               });
  trainer.group().broadcast(&best, sizeof(best), DType::kUint8, 0).wait();
  state.best = std::isnan(best.value) ? std::nullopt : std::optional(best);
  if (trainer.rank() != 0) return;
  log_.write(Severity::kWarning, kTrainLogger, turned_ranking(state, *before));
}

/// On rank 0: best.EXT becomes the best that is still there, and so does the link `best` if that is
/// a folder. Nothing if there is none.
std::optional<MetricPoint> Checkpoints::name_best_kept(Trainer& trainer) {
  const auto& state = trainer.state();
  const auto& dir = trainer.config().train.ckpt_save_dir;
  const auto kept = find_kept(dir, weights_, state);
  const auto best = best_kept(state.history, kept, state.higher_is_better);
  if (!best) return std::nullopt;
  const auto folder = step_folder_name(best->step);
  const bool has_folder = kept.steps.contains(best->step);
  if (weights_ && !has_folder) {
    weights_->name_best(best->epoch);
  } else if (weights_) {
    CheckpointContent content;
    content.model = read_weights(dir / folder / kModelFile);
    auto average = load_extra(dir / folder, kEmaFile);
    if (average) content.extra[kEmaFile] = std::move(*average);
    write_weights(content, {.epoch = {}, .averaged = true, .best = true}, dir / folder);
  }
  if (has_folder) point_link(dir, "best", folder, fence_);
  return best;
}

}  // namespace lockstep::inline internal
