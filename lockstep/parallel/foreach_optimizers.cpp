#include "lockstep/foreach_optimizers.h"

#include <ATen/core/grad_mode.h>

#include "lockstep/parallel/foreach_step.h"

namespace lockstep {
namespace {

using torch::optim::Optimizer;

/// Whether lists of tensors are worth while: ATen has kernels for lists on CUDA alone.
bool takes_lists(const Optimizer& optimizer) {
  bool any = false;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      if (!parameter.is_cuda() || parameter.grad().layout() != at::kStrided) return false;
      any = true;
    }
  }
  return any;
}

template <class Options>
bool has_amsgrad(const Optimizer& optimizer) {
  for (const auto& group : optimizer.param_groups()) {
    if (static_cast<const Options&>(group.options()).amsgrad()) return true;
  }
  return false;
}

at::Tensor loss_of(const Optimizer::LossClosure& closure) {
  if (!closure) return {};
  const at::AutoGradMode with_gradients(true);
  return closure();
}

}  // namespace

at::Tensor ForeachSGD::step(LossClosure closure) {
  at::Tensor loss = loss_of(closure);
  if (takes_lists(*this)) {
    foreach_step(*this);
  } else {
    SGD::step();
  }
  return loss;
}

at::Tensor ForeachAdam::step(LossClosure closure) {
  at::Tensor loss = loss_of(closure);
  if (takes_lists(*this) && !has_amsgrad<torch::optim::AdamOptions>(*this)) {
    foreach_step(*this);
  } else {
    Adam::step();
  }
  return loss;
}

at::Tensor ForeachAdamW::step(LossClosure closure) {
  at::Tensor loss = loss_of(closure);
  if (takes_lists(*this) && !has_amsgrad<torch::optim::AdamWOptions>(*this)) {
    foreach_step(*this);
  } else {
    AdamW::step();
  }
  return loss;
}

}  // namespace lockstep
