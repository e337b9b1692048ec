#include "lockstep/train/task/classification.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/topk.h>

#include <algorithm>

namespace lockstep {
namespace {

Tensors leading(const Tensors& columns, int64_t rows) {
  Tensors some;
  for (const auto& column : columns) some.push_back(column.narrow(0, 0, rows));
  return some;
}

}  // namespace

at::Tensor classification_loss(const at::Tensor& logits, const at::Tensor& labels,
                               const CrossEntropyConfig& config) {
  constexpr int64_t kIgnoreNone = -100;  // libtorch's default
  const auto target = labels.is_floating_point() ? labels.to(logits.scalar_type()) : labels;
  return at::cross_entropy_loss(logits, target, {}, at::Reduction::Mean, kIgnoreNone,
                                config.smoothing);
}

ClassificationSums classification_sums(const Tensors& outputs, const Tensors& targets,
                                       int64_t valid, const LossFunction& loss) {
  if (valid == 0) return {};
  const auto rows = leading(outputs, valid);
  const auto counted = leading(targets, valid);
  const int64_t best = std::min<int64_t>(5, rows.front().size(1));
  const auto top = std::get<1>(at::topk(rows.front(), best, 1));  // (valid, best), best first
  const auto& target = counted.front();
  const auto labels = target.is_floating_point() ? target.argmax(1) : target;
  const auto hits = top.eq(labels.unsqueeze(1));
  ClassificationSums sums;
  sums.samples = static_cast<double>(valid);
  sums.loss = loss(rows, counted).item().toDouble() * sums.samples;
  sums.correct = static_cast<double>(hits.select(1, 0).sum().item().toLong());
  sums.correct5 = static_cast<double>(hits.sum().item().toLong());
  return sums;
}

LossFunction cross_entropy(const CrossEntropyConfig& config) {
  return [config](const Tensors& outputs, const Tensors& targets) {
    return classification_loss(outputs.front(), targets.front(), config);
  };
}

at::Tensor ClassificationTask::loss(const Tensors& outputs, const Tensors& targets) {
  return loss_(outputs, targets);
}

std::vector<std::string> ClassificationTask::metric_names() const {
  if (num_classes_ <= 5) return {"acc"};
  return {"acc", "top_5"};
}

std::vector<double> ClassificationTask::sums(const Tensors& outputs, const Batch& batch) {
  const auto sums = classification_sums(outputs, batch.targets, batch.valid, loss_);
  return {sums.samples, sums.loss, sums.correct, sums.correct5};
}

EvalResult ClassificationTask::result(std::span<const double> sums) {
  const double count = std::max(1.0, sums[0]);
  EvalResult result;
  result.samples = static_cast<int64_t>(sums[0]);
  result.loss = sums[1] / count;
  result.metrics = {{"acc", sums[2] / count}};
  if (num_classes_ > 5) result.metrics.emplace_back("top_5", sums[3] / count);
  return result;
}

}  // namespace lockstep
