#pragma once
// Figures of one class by the order of all samples' scores: pure functions.

#include <cstdint>
#include <span>

namespace lockstep {

/// A sample's score for a class and whether it has the class, in one number: sorting them sorts by
/// score. A score that is no number is below all others.
using RankedSample = uint64_t;
RankedSample ranked_sample(float score, bool present);

struct RankFigures {
  /// Area under the ROC curve: the share of pairs, one sample with the class and one without, whose
  /// first has the higher score; equal scores count half. NaN without a pair.
  double auc = 0;
  /// Average precision: the sum over the thresholds of precision times the gain of recall. NaN if
  /// no sample has the class.
  double average_precision = 0;
};

/// `sorted`: ascending. Both figures are those of scikit-learn. They depend on the samples alone,
/// and pairs are counted in whole numbers.
RankFigures rank_figures(std::span<const RankedSample> sorted);

}  // namespace lockstep
