#pragma once
// Compares recognised words with the ground truth: MindOCR's RecMetric.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/ocr/options.h"
#include "lockstep/ocr/text/dictionary.h"

namespace lockstep::ocr {

/// Counts of one word or of many. They add up over ranks, with the same bits in any order (up to
/// 2^23 words), because distances are whole multiples of 2^-30.
struct RecCounts {
  double words = 0;
  double correct = 0;
  double distance = 0;  ///< Sum of normalised edit distances.

  static constexpr size_t kEntries = 3;
  std::array<double, kEntries> flat() const { return {words, correct, distance}; }
  static RecCounts from(std::span<const double, kEntries> flat) {
    return {flat[0], flat[1], flat[2]};
  }
  RecCounts& operator+=(const RecCounts& other);
};

/// Both texts in their compared form; MindOCR's print_flag shows them as "{predicted} :: {truth}".
struct RecScore {
  std::string predicted;
  std::string truth;
  RecCounts counts;  ///< Of this one word.
};

/// Read-only after construction.
class RecScorer {
 public:
  /// Reads the dictionary of filter_ood; see Dictionary for errors.
  explicit RecScorer(const RecMetricOptions& options);

  /// Both texts are UTF-8. The steps, in this order: remove spaces (ignore_space), lower case
  /// (lower), remove the truth's characters that the dictionary lacks (filter_ood), remove symbols
  /// (ignore_symbol).
  RecScore score(std::string_view predicted, std::string_view truth) const;

 private:
  RecMetricOptions options_;
  std::optional<Dictionary> dictionary_;
};

struct RecFigures {
  double acc = 0;                 ///< Words that are equal.
  double norm_edit_distance = 0;  ///< 1 - mean of edit distance over the longer one's length.
};

/// 0 for no words.
RecFigures rec_figures(const RecCounts& counts);

/// Least number of insertions, deletions and substitutions of characters between both, divided by
/// the longer length: 0 .. 1, 0 for two empty ones. UTF-8. Cost: product of lengths.
double normalised_edit_distance(std::string_view a, std::string_view b);

}  // namespace lockstep::ocr
