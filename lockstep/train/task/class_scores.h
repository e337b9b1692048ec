#pragma once
// The scores of all evaluated samples, for metrics that need their order.

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "lockstep/process_group.h"
#include "lockstep/train.h"
#include "lockstep/train/task/ranking.h"

namespace lockstep {

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

}  // namespace lockstep
