#include "lockstep/grad_scaler.h"

#include <torch/optim/optimizer.h>

#include <utility>
#include <vector>

#include "lockstep/amp/gradients.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

std::vector<at::Tensor> gradients_of_optimizer(torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> parameters;
  for (const auto& part : optimizer.param_groups()) {
    parameters.insert(parameters.end(), part.params().begin(), part.params().end());
  }
  return gradients_of(parameters);
}

Error wrong_order(const char* what) {
  return Error(ErrorCode::kInvalidArgument, std::string("GradScaler: ") + what);
}

}  // namespace

GradScaler::GradScaler(ProcessGroup group, const LossScaleOptions& options)
    : group_(std::move(group)), options_(options) {
  options_.validate();
  state_ = first_loss_scale(options_);
}

bool GradScaler::unscale(torch::optim::Optimizer& optimizer) {
  if (seen_.contains(&optimizer)) {
    throw wrong_order("unscale() of an optimizer that was unscaled since the last update()");
  }
  const auto gradients = gradients_of_optimizer(optimizer);
  int32_t overflow = all_finite(gradients) ? 0 : 1;
  group_.all_reduce(&overflow, 1, DType::kInt32, ReduceOp::kMax).wait();
  lockstep::unscale(gradients, state_.scale);
  seen_[&optimizer].finite = overflow == 0;
  return overflow == 0;
}

bool GradScaler::step(torch::optim::Optimizer& optimizer) {
  if (!seen_.contains(&optimizer)) unscale(optimizer);
  Seen& seen = seen_[&optimizer];
  if (std::exchange(seen.stepped, true)) {
    throw wrong_order("step() of an optimizer twice without an update() between");
  }
  if (seen.finite) optimizer.step();
  return seen.finite;
}

void GradScaler::update() {
  if (seen_.empty()) throw wrong_order("update() without a step() before");
  bool overflow = false;
  for (const auto& [optimizer, seen] : seen_) overflow = overflow || !seen.finite;
  seen_.clear();
  state_ = next_loss_scale(state_, overflow, options_);
}

}  // namespace lockstep
