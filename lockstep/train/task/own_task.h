#pragma once

#include "lockstep/registry.h"
#include "lockstep/train/task/task.h"

namespace lockstep {

/// A loss, and a metric that a program registered.
class OwnTask final : public Task {
 public:
  OwnTask(LossFunction loss, std::unique_ptr<Metric> metric)
      : loss_(std::move(loss)), metric_(std::move(metric)) {}

  at::Tensor loss(const at::Tensor& output, std::span<const at::Tensor> targets) override {
    return loss_(output, targets);
  }
  std::vector<std::string> metric_names() const override { return metric_->metric_names(); }
  size_t num_sums() const override { return metric_->num_sums(); }
  std::vector<double> sums(const at::Tensor& output, const Batch& batch) override {
    return metric_->sums(output, batch);
  }
  EvalResult result(std::span<const double> sums) override { return metric_->result(sums); }

 private:
  LossFunction loss_;
  std::unique_ptr<Metric> metric_;
};

}  // namespace lockstep
