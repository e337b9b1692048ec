#include "lockstep/train/epoch_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::inline internal {
namespace {

double over_batches(const TrainingState& state) {
  return state.epoch_loss / static_cast<double>(std::max<int64_t>(state.batch_in_epoch, 1));
}

/// 0 of no items: a sum must not become NaN.
double finite_mean(const TrainingState& state) {
  const double mean = mean_loss(state);
  return std::isnan(mean) ? 0 : mean;
}

/// Converts the sums of an epoch that a run with the other kind of mean began.
void take_up_sums(TrainingState& state, bool counts_items) {
  if (state.epoch_items.has_value() == counts_items) return;
  if (counts_items) {
    state.epoch_loss = 0;
    state.epoch_items = 0;
  } else {
    state.epoch_loss = finite_mean(state) * static_cast<double>(state.batch_in_epoch);
    state.epoch_items.reset();
  }
}

}  // namespace

void add_loss(TrainingState& state, const ReportedLoss& next) {
  take_up_sums(state, next.items.has_value());
  const double weight = next.items.value_or(static_cast<double>(next.micro_steps));
  state.epoch_loss += (std::isfinite(next.loss) ? next.loss : finite_mean(state)) * weight;
  if (next.items) *state.epoch_items += *next.items;
}

double mean_loss(const TrainingState& state) {
  if (!state.epoch_items) return over_batches(state);
  if (*state.epoch_items == 0) return std::numeric_limits<double>::quiet_NaN();
  return state.epoch_loss / *state.epoch_items;
}

}  // namespace lockstep::inline internal
