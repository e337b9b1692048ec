#pragma once
// Training samples that are drawn by weights: BatchMaker::weights(), train.loader.sampler.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/train/setup.h"

namespace lockstep::inline internal {

struct SampleWeights {
  std::vector<double> values{};  ///< One for each sample; or none at all.
  std::string note{};            ///< A line for the log.
};

/// 1 / n for each sample of a class that has n of them. So each class that has any is drawn as
/// often as any other. `label(i)`, not negative: the class of sample i of `samples`.
SampleWeights balanced_weights(int64_t samples,
                               const std::function<int64_t(int64_t sample)>& label);

/// parts.order becomes weighted_order(), with replacement, unless there are no weights. parts.notes
/// get their note. parts.digest gets theirs, because ranks with others draw other samples, and an
/// epoch that goes on with others is in another order. Errors: those of weighted_order().
void draw_by_weights(SampleWeights weights, DataParts& parts);

}  // namespace lockstep::inline internal
