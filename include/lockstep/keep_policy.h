#pragma once
// The choice of checkpoints to keep on disk, apart from their deletion.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class Keep {
  kAll,
  kLatest,  ///< The newest `count`.
  kTopK,    ///< The best `count` by metric.
};

struct KeepPolicy {
  Keep keep = Keep::kLatest;
  int count = 5;                 ///< At least 1.
  bool higher_is_better = true;  ///< For kTopK and for the best checkpoint.

  void validate() const;  ///< Throws kInvalidArgument naming field and value.
};

/// MindOCR's names: "latest_k", "top_k", "" or "none" (all). Errors: kInvalidArgument.
Keep parse_keep(std::string_view name);

struct CheckpointEntry {
  std::string name;  ///< Folder name, e.g. "step_000020".
  int64_t step = 0;
  std::optional<double> metric;  ///< None if it was not evaluated or is not a number.
};

/// The best entry by metric; of equals the one with the higher step. None if no entry has a metric.
std::optional<CheckpointEntry> best_checkpoint(const std::vector<CheckpointEntry>& entries,
                                               bool higher_is_better);

/// Names to delete, oldest first. Never the newest (a run resumes from it) and never the best.
/// kTopK orders by (metric, step); an entry without a metric ranks below all others.
std::vector<std::string> plan_removal(const std::vector<CheckpointEntry>& entries,
                                      const KeepPolicy& policy);

}  // namespace lockstep
