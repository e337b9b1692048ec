#include "lockstep/foreach_optimizers.h"

#include <ATen/core/grad_mode.h>

#include "lockstep/parallel/foreach_step.h"

namespace lockstep {
namespace {

using torch::optim::Optimizer;

/// Whether lists of tensors are worth while, and foreach_step() does all that `Options` ask for:
/// ATen has kernels for lists on CUDA alone.
template <class Options>
bool takes_lists(const Optimizer& optimizer) {
  bool any = false;
  for (const auto& group : optimizer.param_groups()) {
    if constexpr (requires(const Options& options) { options.amsgrad(); }) {
      if (static_cast<const Options&>(group.options()).amsgrad()) return false;
    }
    for (const auto& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      if (!parameter.is_cuda() || parameter.grad().layout() != at::kStrided) return false;
      any = true;
    }
  }
  return any;
}

/// `Libtorchs`: the class of libtorch whose step it is.
template <class Options, class Libtorchs>
at::Tensor step_of(Libtorchs& optimizer, const Optimizer::LossClosure& closure) {
  at::Tensor loss;
  if (closure) {
    const at::AutoGradMode with_gradients(true);
    loss = closure();
  }
  if (takes_lists<Options>(optimizer)) {
    foreach_step(optimizer);
  } else {
    optimizer.Libtorchs::step();
  }
  return loss;
}

}  // namespace

at::Tensor ForeachSGD::step(LossClosure closure) {
  return step_of<torch::optim::SGDOptions, torch::optim::SGD>(*this, closure);
}

at::Tensor ForeachAdam::step(LossClosure closure) {
  return step_of<torch::optim::AdamOptions, torch::optim::Adam>(*this, closure);
}

at::Tensor ForeachAdamW::step(LossClosure closure) {
  return step_of<torch::optim::AdamWOptions, torch::optim::AdamW>(*this, closure);
}

}  // namespace lockstep
