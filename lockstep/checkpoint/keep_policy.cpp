#include "lockstep/checkpoint/keep_policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep {

bool internal::keeps_rather(const KeepPolicy& policy, const CheckpointEntry& a,
                            const CheckpointEntry& b) {
  if (policy.keep != Keep::kTopK) return a.step > b.step;
  if (a.metric.has_value() != b.metric.has_value()) return a.metric.has_value();
  if (a.metric && *a.metric != *b.metric) return (*a.metric > *b.metric) == policy.higher_is_better;
  return a.step > b.step;
}

void KeepPolicy::validate() const {
  if (keep != Keep::kAll && count < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("number of checkpoints to keep is {}, at least 1 is needed", count));
  }
}

std::optional<CheckpointEntry> best_checkpoint(const std::vector<CheckpointEntry>& entries,
                                               bool higher_is_better) {
  std::optional<CheckpointEntry> best;
  for (const CheckpointEntry& entry : entries) {
    if (!entry.metric) continue;
    const bool equals = best && *entry.metric == *best->metric;
    const bool better = !best || (*entry.metric > *best->metric) == higher_is_better;
    if (equals ? entry.step < best->step : better) best = entry;
  }
  return best;
}

std::vector<std::string> internal::plan_removal(const std::vector<CheckpointEntry>& entries,
                                                const KeepPolicy& policy) {
  policy.validate();
  if (policy.keep == Keep::kAll || entries.empty()) return {};
  std::vector<CheckpointEntry> ranked = entries;
  std::sort(ranked.begin(), ranked.end(),
            [&](const auto& a, const auto& b) { return keeps_rather(policy, a, b); });
  const auto newest = std::max_element(
      entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  const auto best = best_checkpoint(entries, policy.higher_is_better);

  std::vector<CheckpointEntry> removed;
  for (size_t i = static_cast<size_t>(policy.count); i < ranked.size(); ++i) {
    const std::string& name = ranked[i].name;
    if (name != newest->name && !(best && name == best->name)) removed.push_back(ranked[i]);
  }
  std::sort(removed.begin(), removed.end(),
            [](const auto& a, const auto& b) { return a.step < b.step; });
  std::vector<std::string> names;
  for (const CheckpointEntry& entry : removed) names.push_back(entry.name);
  return names;
}

}  // namespace lockstep
