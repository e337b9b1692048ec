// What evaluations decide: the rate of reduce_on_plateau, and the end by early stopping.

#include <fmt/format.h>

#include "lockstep/base/counted.h"
#include "lockstep/train/patience.h"
#include "lockstep/train/schedule/schedule.h"
#include "lockstep/train/trainer.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kPlateauKey = "scheduler.metric";
constexpr auto kEarlyKey = "train.early_stopping.metric";

std::string not_improved(const PatienceState& state) {
  const std::string best = state.best ? fmt::format(", best: {}", python_float(*state.best)) : "";
  return fmt::format("{} has not improved in {}{}", state.metric,
                     counted(state.waited, "evaluation"), best);
}

}  // namespace

bool Trainer::stopped_early() const {
  const auto& early = config().train.early_stopping;
  return early && state_.early_stopping && state_.early_stopping->waited >= early->patience &&
         state_.epoch < config().scheduler.num_epochs;
}

/// Takes up the saved states of what is watched.
void Trainer::begin_watching() {
  const auto& scheduler = config().scheduler;
  const auto& early = config().train.early_stopping;
  const auto names = scheduler.scheduler == "reduce_on_plateau" || early
                         ? task().metric_names()
                         : std::vector<std::string>();
  if (scheduler.scheduler == "reduce_on_plateau") {
    check_watched(kPlateauKey, scheduler.plateau.metric, names);
    state_.plateau = begin_patience(
        scheduler.plateau, is_higher_better(task(), scheduler.plateau.metric), state_.plateau);
  } else {
    state_.plateau.reset();
  }
  if (early) {
    check_watched(kEarlyKey, early->metric, names);
    state_.early_stopping =
        begin_patience(*early, is_higher_better(task(), early->metric), state_.early_stopping);
  } else {
    state_.early_stopping.reset();
  }
}

void Trainer::check_watched_values(const EvalResult& result) const {
  if (state_.plateau) watched_value(kPlateauKey, state_.plateau->metric, result);
  if (state_.early_stopping) watched_value(kEarlyKey, state_.early_stopping->metric, result);
}

/// The end of max_steps within an epoch does not count: a run without that bound has no evaluation
/// there.
void Trainer::watch(const EvalResult& result) {
  watch_notes_.clear();
  rate_reduced_ = false;
  if (state_.epoch_samples > 0) return;
  if (state_.plateau) watch_plateau(result);
  if (state_.early_stopping) watch_for_the_end(result);
}

void Trainer::watch_plateau(const EvalResult& result) {
  const auto& scheduler = config().scheduler;
  auto& state = *state_.plateau;
  const double value = watched_value(kPlateauKey, state.metric, result);
  // In warm-up the rate rises, whatever the metric does.
  if (static_cast<double>(state_.epoch) < scheduler.warmup_epochs) return;
  if (!note_value(state, scheduler.plateau, value)) return;
  const auto rate = [&] {
    return rate_factor_ * learning_rate(scheduler, static_cast<double>(state_.schedule_step),
                                        steps_per_epoch_, state.times);
  };
  const double before = rate();
  const std::string why = not_improved(state);
  ++state.times;
  state.waited = 0;
  rate_reduced_ = rate() != before;
  if (!rate_reduced_) return;  // min_lr was reached before
  watch_notes_.push_back(
      fmt::format("reduce_on_plateau: {}: the learning rate is reduced from {} to {}", why,
                  python_float(before), python_float(rate())));
}

void Trainer::watch_for_the_end(const EvalResult& result) {
  auto& state = *state_.early_stopping;
  const double value = watched_value(kEarlyKey, state.metric, result);
  if (!note_value(state, *config().train.early_stopping, value)) return;
  if (state_.epoch >= config().scheduler.num_epochs || finished()) return;  // it ends anyway
  stop(StopReason::kEarlyStopping);
  watch_notes_.push_back(fmt::format("Early stopping: {}", not_improved(state)));
}

}  // namespace lockstep::inline internal
