#pragma once

#include "lockstep/error.h"
#include "lockstep/registry.h"
#include "lockstep/train/task/task.h"

namespace lockstep {

/// A loss, and a metric that a program registered.
class OwnTask final : public Task {
 public:
  OwnTask(LossFunction loss, std::unique_ptr<Metric> metric)
      : loss_(std::move(loss)), metric_(std::move(metric)) {}

  at::Tensor loss(const Tensors& outputs, const Tensors& targets) override {
    return loss_(outputs, targets);
  }
  std::vector<std::string> metric_names() const override { return metric_->metric_names(); }
  size_t num_sums() const override { return metric_->num_sums(); }
  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override {
    auto sums = metric_->sums(outputs, batch);
    if (sums.size() == num_sums()) return sums;
    throw Error(ErrorCode::kInvalidArgument, "the metric gave " + std::to_string(sums.size()) +
                                                 " sums, and num_sums() is " +
                                                 std::to_string(num_sums()));
  }
  EvalResult result(std::span<const double> sums) override { return metric_->result(sums); }

 private:
  LossFunction loss_;
  std::unique_ptr<Metric> metric_;
};

}  // namespace lockstep
