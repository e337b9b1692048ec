#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/observe/confusion.h"
#include "lockstep/train/task/metric_list.h"
#include "lockstep/train/task/task.h"

namespace lockstep::inline internal {

class ClassScores;

/// Cross entropy of logits (N, K) and labels (N), the mean over the batch. With smoothing s the
/// target is (1 - s) for the label plus s / K for every class. Returns a scalar.
///
/// Labels may also be shares of the classes, (N, K) of floats, as MixUp gives them. With smoothing
/// they are (1 - s) of the target.
/// Source: Szegedy et al., CVPR 2016, section 7; torch.nn.CrossEntropyLoss.
///
/// `name`: of the loss, for errors. Errors: kInvalidArgument if labels are none of the classes, or
/// do not fit the logits.
at::Tensor classification_loss(const at::Tensor& logits, const at::Tensor& labels,
                               const CrossEntropyConfig& config,
                               const char* name = "CrossEntropySmooth");

/// classification_loss() of the first target.
LossFunction cross_entropy(const CrossEntropyConfig& config,
                           const char* name = "CrossEntropySmooth");

/// A loss that needs the inputs, too; see Task::loss_of().
using BatchLoss = std::function<at::Tensor(const Batch& batch, const Tensors& outputs)>;

struct ClassificationParts {
  LossFunction loss;
  BatchLoss batch_loss{};       ///< In the place of `loss`, in training.
  uint64_t teacher_digest = 0;  ///< See Task.
  MetricList metrics;
  bool evaluates_loss = true;
  std::shared_ptr<ClassScores> scores{};  ///< For those of `metrics` that read them.
  int64_t confused_classes = 0;           ///< Counts a Confusion of so many; 0: none.
};

/// Classes of samples, the first target, or any other that loss and metrics of a program's own
/// understand. Its figures are those of all its metrics, in their order.
class ClassificationTask final : public Task {
 public:
  explicit ClassificationTask(ClassificationParts parts);
  /// With ClsMetric.
  ClassificationTask(LossFunction loss, int64_t num_classes);

  at::Tensor loss(const Tensors& outputs, const Tensors& targets) override;
  at::Tensor loss_of(const Batch& batch, const Tensors& outputs) override;
  uint64_t teacher_digest() const override { return parts_.teacher_digest; }
  std::vector<std::string> metric_names() const override;
  std::vector<std::string> lower_is_better() const override;
  size_t num_sums() const override;
  /// Errors: kInvalidArgument if a metric gives another number of sums than it said.
  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override;
  EvalResult result(std::span<const double> sums) override;
  void start_evaluation() override;
  void join_ranks(ProcessGroup& group) override;
  const Confusion* confusion() const override;

 private:
  void keep(const Tensors& outputs, const Batch& batch);

  ClassificationParts parts_;
  Confusion confusion_;
};

}  // namespace lockstep::inline internal
