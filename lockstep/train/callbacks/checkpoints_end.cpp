// The end of a run that saves checkpoints, and its closing lines.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/checkpoint/keep_policy.h"
#include "lockstep/train/callbacks/checkpoints.h"

namespace lockstep::inline internal {
namespace {

/// The evaluations of the run in the order of top_k: best first, and the newer of equals.
std::vector<MetricPoint> ranked(const TrainingState& state) {
  const KeepPolicy policy{Keep::kTopK, 1, state.higher_is_better};
  const auto entry = [](const MetricPoint& point) {
    const auto metric = std::isfinite(point.value) ? std::optional(point.value) : std::nullopt;
    return CheckpointEntry{.name = {}, .step = point.step, .metric = metric};
  };
  auto points = state.history;
  std::stable_sort(points.begin(), points.end(), [&](const MetricPoint& a, const MetricPoint& b) {
    return keeps_rather(policy, entry(a), entry(b));
  });
  return points;
}

std::string best_line(const TrainingState& state) {
  return fmt::format("=> Best {}: {}", state.metric, python_float(state.best->value));
}

bool says_best_at_end(Trainer& trainer) {
  return signal_of(trainer.stop_reason()) == 0 && trainer.state().best;
}

}  // namespace

std::string Checkpoints::best_is_saved(const TrainingState& state) {
  return best_line(state) + ", checkpoint saved.";
}

void Checkpoints::on_close(Trainer& trainer) {
  wait_for_disk(trainer);
  if (says_best_at_end(trainer)) {
    const MutexLock lock(mutex_);
    std::erase_if(notes_, [said = best_is_saved(trainer.state())](const auto& note) {
      return note.second == said;
    });
  }
  say_notes(trainer);
}

void Checkpoints::on_closed(Trainer& trainer) {
  if (trainer.rank() != 0) return;
  const auto& state = trainer.state();
  if (trainer.stop_reason() == StopReason::kMembership) {
    log_.info(kTrainLogger,
              fmt::format("Stopped after step {}, checkpoint saved: hosts joined or left this job. "
                          "The job continues with other hosts",
                          state.step));
    return;
  }
  const int signal = signal_of(trainer.stop_reason());
  if (signal != 0) {
    log_.info(kTrainLogger, fmt::format("SIG{}: stopped after step {}, checkpoint saved.",
                                        ::sigabbrev_np(signal), state.step));
    return;
  }
  if (!says_best_at_end(trainer)) {
    log_.info(kTrainLogger, "Training completed!");
    return;
  }
  log_.info(kTrainLogger, best_line(state) + " \nTraining completed!");
  const bool any = weights_ ? !weights_->kept().empty() : !state.history.empty();
  if (any && keep_policy(trainer).keep == Keep::kTopK) {
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
  auto points = ranked(state);
  const auto path_of = [&](const MetricPoint& point) {
    return trainer.config().train.ckpt_save_dir / step_folder_name(point.step);
  };
  std::erase_if(points,
                [&](const auto& point) { return !std::filesystem::exists(path_of(point)); });
  const auto count = static_cast<size_t>(keep_policy(trainer).count);
  for (size_t i = 0; i < std::min(points.size(), count); ++i) {
    line(points[i].value, path_of(points[i]));
  }
  return table;
}

}  // namespace lockstep::inline internal
