#pragma once
// The best weights of a run among those that were kept.

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "lockstep/checkpoint_folder.h"

namespace lockstep::inline internal {

/// The weights of a run that are still on disk.
struct KeptWeights {
  std::set<int64_t> steps;   ///< Of checkpoints that were evaluated.
  std::set<int64_t> epochs;  ///< Of files e{N}.EXT.
};

/// Whether e{N}.EXT has the weights of `point`. They are those of the epoch's end, whose evaluation
/// is the first with its number: a later one lies within the next epoch.
bool has_epoch_file(const MetricPoint& point, const std::vector<MetricPoint>& history,
                    const KeptWeights& kept);

/// The best of `history` whose weights are still there; the first of equals. None if there is none
/// with a finite value.
std::optional<MetricPoint> best_kept(const std::vector<MetricPoint>& history,
                                     const KeptWeights& kept, bool higher_is_better);

}  // namespace lockstep::inline internal
