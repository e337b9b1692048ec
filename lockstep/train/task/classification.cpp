#include "lockstep/train/task/classification.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/process_group.h"
#include "lockstep/train/task/class_metrics.h"
#include "lockstep/train/task/class_scores.h"
#include "lockstep/train/task/class_targets.h"
#include "lockstep/train/task/logged_values.h"

namespace lockstep::inline internal {
namespace {

/// The entries of sums() before those of the metrics: samples, loss.
constexpr size_t kFirstSums = 2;

/// `column` without the batch's padding. An output may have no rows, as a loss of the network's
/// own, and stays as it is.
at::Tensor without_padding(const at::Tensor& column, const Batch& batch) {
  const at::Tensor& like = batch.images.defined() ? batch.images : batch.targets.front();
  const bool padded = batch.valid < like.size(0) && column.defined() && column.dim() > 0 &&
                      column.size(0) == like.size(0);
  return padded ? column.narrow(0, 0, batch.valid) : column;
}

Tensors without_padding(Tensors columns, const Batch& batch) {
  for (auto& column : columns) column = without_padding(column, batch);
  return columns;
}

/// Adds samples with one label each; others are left out, and labels that are no class.
void count_pairs(const at::Tensor& logits, const at::Tensor& labels, Confusion& confusion) {
  const bool fits = logits.dim() == 2 && logits.size(1) == confusion.classes &&
                    has_one_class(labels) && logits.size(0) == labels.size(0) &&
                    !labels.is_floating_point();
  if (!fits) return;
  const auto predicted = at::argmax(logits, 1).contiguous();
  const auto truth = labels.to(at::kLong).contiguous();
  for (int64_t i = 0; i < truth.size(0); ++i) {
    const int64_t label = truth.data_ptr<int64_t>()[i];
    if (label < 0 || label >= confusion.classes) continue;
    const int64_t at = label * confusion.classes + predicted.data_ptr<int64_t>()[i];
    ++confusion.counts[static_cast<size_t>(at)];
  }
}

ClassificationParts with_accuracy(LossFunction loss, int64_t num_classes) {
  return {.loss = std::move(loss), .metrics = only(accuracy_metric(num_classes))};
}

}  // namespace

at::Tensor classification_loss(const at::Tensor& logits, const at::Tensor& labels,
                               const CrossEntropyConfig& config, const char* name) {
  check_cross_entropy_targets(name, logits, labels);
  constexpr int64_t kIgnoreNone = -100;  // libtorch's default
  const auto target = labels.is_floating_point() ? labels.to(logits.scalar_type()) : labels;
  return at::cross_entropy_loss(logits, target, {}, at::Reduction::Mean, kIgnoreNone,
                                config.smoothing);
}

LossFunction cross_entropy(const CrossEntropyConfig& config, const char* name) {
  return [config, name](const Tensors& outputs, const Tensors& targets) {
    return classification_loss(outputs.front(), targets.front(), config, name);
  };
}

ClassificationTask::ClassificationTask(ClassificationParts parts) : parts_(std::move(parts)) {
  const int64_t classes = parts_.confused_classes;
  confusion_ = {classes, std::vector<int64_t>(static_cast<size_t>(classes * classes))};
}

ClassificationTask::ClassificationTask(LossFunction loss, int64_t num_classes)
    : ClassificationTask(with_accuracy(std::move(loss), num_classes)) {}

at::Tensor ClassificationTask::loss(const Tensors& outputs, const Tensors& targets) {
  return parts_.loss(outputs, targets);
}

at::Tensor ClassificationTask::loss_of(const Batch& batch, const Tensors& outputs) {
  return parts_.batch_loss ? parts_.batch_loss(batch, outputs) : loss(outputs, batch.targets);
}

std::vector<std::string> ClassificationTask::metric_names() const {
  return figure_names(parts_.metrics);
}

std::vector<std::string> ClassificationTask::lower_is_better() const {
  return lower_figures(parts_.metrics);
}

size_t ClassificationTask::num_sums() const {
  return kFirstSums + lockstep::num_sums(parts_.metrics);
}

std::vector<double> ClassificationTask::sums(const Tensors& outputs, const Batch& batch) {
  const auto samples = static_cast<double>(batch.valid);
  double loss = 0;
  if (parts_.evaluates_loss && batch.valid > 0) {
    const LoggedValues dropped;
    loss = parts_.loss(without_padding(outputs, batch), without_padding(batch.targets, batch))
               .item()
               .toDouble();
  }
  std::vector<double> all = {samples, loss * samples};
  add_sums(parts_.metrics, outputs, batch, all);
  if (batch.valid > 0) keep(outputs, batch);
  return all;
}

/// What sums cannot hold.
void ClassificationTask::keep(const Tensors& outputs, const Batch& batch) {
  if (!parts_.scores && confusion_.counts.empty()) return;
  const auto logits = without_padding(outputs.front(), batch);
  const auto targets = without_padding(batch.targets.front(), batch);
  if (parts_.scores) parts_.scores->add(logits, targets);
  if (!confusion_.counts.empty()) count_pairs(logits, targets, confusion_);
}

EvalResult ClassificationTask::result(std::span<const double> sums) {
  EvalResult all;
  all.samples = static_cast<int64_t>(sums[0]);
  if (parts_.evaluates_loss) all.loss = sums[1] / std::max(1.0, sums[0]);
  add_results(parts_.metrics, sums.subspan(kFirstSums), all);
  return all;
}

void ClassificationTask::start_evaluation() {
  if (parts_.scores) parts_.scores->clear();
  std::fill(confusion_.counts.begin(), confusion_.counts.end(), 0);
}

void ClassificationTask::join_ranks(ProcessGroup& group) {
  if (parts_.scores) parts_.scores->join(group);
  auto& counts = confusion_.counts;
  if (counts.empty()) return;
  group.all_reduce(counts.data(), std::ssize(counts), DType::kInt64, ReduceOp::kSum).wait();
}

const Confusion* ClassificationTask::confusion() const {
  return confusion_.counts.empty() ? nullptr : &confusion_;
}

}  // namespace lockstep::inline internal
