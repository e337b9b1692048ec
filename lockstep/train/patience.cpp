#include "lockstep/train/patience.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kLoss = "loss";

bool improves(const PatienceState& state, double min_delta, double value) {
  if (!std::isfinite(value)) return false;  // as record_metric() has it
  if (!state.best) return true;
  const double gain = state.higher_is_better ? value - *state.best : *state.best - value;
  return gain > min_delta;
}

}  // namespace

void check_watched(const std::string& key, const std::string& metric,
                   const std::vector<std::string>& known) {
  auto names = known;
  names.emplace_back(kLoss);
  if (std::find(names.begin(), names.end(), metric) != names.end()) return;
  // Only a result of the metric shows whether it computes the loss: see watched_value().
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} is '{}', evaluation gives {}, and loss if the metric computes it{}",
                          key, metric, fmt::join(known, ", "), did_you_mean(metric, names)));
}

double watched_value(const std::string& key, const std::string& metric, const EvalResult& result) {
  if (metric != kLoss) return result.metric(metric);
  if (result.loss) return *result.loss;
  std::vector<std::string> names;
  for (const auto& [name, value] : result.metrics) names.push_back(name);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} is 'loss', which the metric does not compute: evaluation gives {}",
                          key, fmt::join(names, ", ")));
}

PatienceState begin_patience(const PatienceConfig& config, bool higher_is_better,
                             const std::optional<PatienceState>& saved) {
  const bool same =
      saved && saved->metric == config.metric && saved->higher_is_better == higher_is_better;
  if (same) return *saved;
  PatienceState state;
  state.metric = config.metric;
  state.higher_is_better = higher_is_better;
  if (saved) state.times = saved->times;
  return state;
}

bool note_value(PatienceState& state, const PatienceConfig& config, double value) {
  if (improves(state, config.min_delta, value)) {
    state.best = value;
    state.waited = 0;
  } else {
    ++state.waited;
  }
  return state.waited >= config.patience;
}

}  // namespace lockstep::inline internal
