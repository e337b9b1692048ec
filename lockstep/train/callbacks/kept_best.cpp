#include "lockstep/train/callbacks/kept_best.h"

#include <algorithm>
#include <cmath>

namespace lockstep::inline internal {

bool has_epoch_file(const MetricPoint& point, const std::vector<MetricPoint>& history,
                    const KeptWeights& kept) {
  if (!kept.epochs.contains(point.epoch)) return false;
  const auto end = std::find_if(history.begin(), history.end(), [&](const MetricPoint& other) {
    return other.epoch == point.epoch;
  });
  return end != history.end() && end->step == point.step;
}

std::optional<MetricPoint> best_kept(const std::vector<MetricPoint>& history,
                                     const KeptWeights& kept, bool higher_is_better) {
  std::vector<CheckpointEntry> entries;
  for (const MetricPoint& point : history) {
    const bool is_kept = kept.steps.contains(point.step) || has_epoch_file(point, history, kept);
    if (!is_kept || !std::isfinite(point.value)) continue;
    entries.push_back({.name = {}, .step = point.step, .metric = point.value});
  }
  const auto best = best_checkpoint(entries, higher_is_better);
  if (!best) return std::nullopt;
  return *std::find_if(history.begin(), history.end(), [&](const MetricPoint& point) {
    return point.step == best->step && point.value == *best->metric;
  });
}

}  // namespace lockstep::inline internal
