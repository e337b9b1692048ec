#pragma once

#include "lockstep/train/task/task.h"

namespace lockstep {

/// Cross entropy of logits (N, K) and labels (N), the mean over the batch. With smoothing s the
/// target is (1 - s) for the label plus s / K for every class. Returns a scalar.
///
/// Labels may also be shares of the classes, (N, K) of floats, as MixUp gives them. With smoothing
/// they are (1 - s) of the target.
/// Source: Szegedy et al., CVPR 2016, section 7; torch.nn.CrossEntropyLoss.
at::Tensor classification_loss(const at::Tensor& logits, const at::Tensor& labels,
                               const CrossEntropyConfig& config);

/// Sums over samples.
struct ClassificationSums {
  double samples = 0;
  double loss = 0;
  double correct = 0;   ///< The best class is the label.
  double correct5 = 0;  ///< The label is among the five best.
};

/// Of one batch: outputs, of which the first are logits (N, K); targets, of which the first are
/// labels (N), or shares (N, K), whose largest is the label. The first `valid` rows count.
ClassificationSums classification_sums(const Tensors& outputs, const Tensors& targets,
                                       int64_t valid, const LossFunction& loss);

/// classification_loss() of the first target.
LossFunction cross_entropy(const CrossEntropyConfig& config);

/// One label an image, or shares of classes: the first target. Metrics: acc, and top_5 with more
/// than 5 classes.
class ClassificationTask final : public Task {
 public:
  ClassificationTask(LossFunction loss, int64_t num_classes)
      : loss_(std::move(loss)), num_classes_(num_classes) {}

  at::Tensor loss(const Tensors& outputs, const Tensors& targets) override;
  std::vector<std::string> metric_names() const override;
  size_t num_sums() const override { return 4; }
  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override;
  EvalResult result(std::span<const double> sums) override;

 private:
  LossFunction loss_;
  int64_t num_classes_;
};

}  // namespace lockstep
