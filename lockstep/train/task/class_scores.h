#pragma once
// The scores of all evaluated samples, and the figures of a class that need their order.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/process_group.h"
#include "lockstep/train.h"

namespace lockstep::inline internal {

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

/// Collects this rank's samples, and ranks those of all ranks, one class after the other. Scores
/// are log-probabilities of softmax, or of classes by themselves their logits. Memory: 4 bytes for
/// each sample and class of this rank, and some 64 MiB in join(). One thread.
class ClassScores {
 public:
  /// `by_itself`: each class has a probability of its own, as with BCEWithLogitsLoss.
  ClassScores(int64_t num_classes, bool by_itself);

  void clear();
  /// `logits`: (N, K). `targets`: labels (N), or (N, K), where above 0.5 means present; then each
  /// class is by itself. Errors: kInvalidArgument if K is another number of classes.
  void add(const at::Tensor& logits, const at::Tensor& targets);
  /// Collective. Each rank sorts its samples, and all merge them, so that every rank has the same
  /// figures, whatever the number of ranks. Drops the samples. Errors: those of the group.
  void join(ProcessGroup& group);
  /// After join(): of each class.
  const std::vector<RankFigures>& figures() const { return figures_; }

 private:
  void rank_classes(ProcessGroup& group, int64_t first, int64_t count, const at::Tensor& scores,
                    const at::Tensor& truth, const std::vector<int64_t>& rows);

  int64_t num_classes_;
  bool by_itself_;
  std::vector<at::Tensor> scores_;  // (n, K) float32
  std::vector<at::Tensor> truth_;   // (n, K) bool
  std::vector<RankFigures> figures_;
};

/// AucMetric: "auc", and MapMetric: "map": the mean over the classes, without those whose figure is
/// undefined. scikit-learn's roc_auc_score (multi_class="ovr") and average_precision_score, both
/// with average="macro".
std::unique_ptr<Metric> auc_metric(std::shared_ptr<const ClassScores> scores);
std::unique_ptr<Metric> map_metric(std::shared_ptr<const ClassScores> scores);

}  // namespace lockstep::inline internal
