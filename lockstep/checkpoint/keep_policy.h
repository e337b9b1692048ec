#pragma once
// The choice of checkpoints and files of weights that a policy keeps, and their names.

#include <string>
#include <vector>

#include "lockstep/checkpoint_folder.h"

namespace lockstep::inline internal {

/// Whether `policy` keeps `a` rather than `b`. kTopK: if it has the better metric; an entry without
/// one, or with one that was not finite, is worse than all others. Otherwise, and of equals: if it
/// has the higher step.
bool keeps_rather(const KeepPolicy& policy, const CheckpointEntry& a, const CheckpointEntry& b);

/// Names to delete, oldest first. Never the newest (a run resumes from it) and never the
/// best_checkpoint(). kTopK orders by (metric, step); an entry without a metric ranks below all
/// others.
/// Errors: those of KeepPolicy::validate().
std::vector<std::string> plan_removal(const std::vector<CheckpointEntry>& entries,
                                      const KeepPolicy& policy);

/// "step_000020"; more digits when needed.
std::string step_folder_name(int64_t step);

/// The warning for a find_checkpoint() that cannot take `latest`: "DIR/latest points to
/// step_000020, which is no whole checkpoint any more: step_000018 is taken". Else empty. Errors:
/// kIo.
std::string lost_latest_warning(const std::filesystem::path& path);
}  // namespace lockstep::inline internal
