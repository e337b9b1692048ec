#pragma once
// These optimizers update all parameters on a GPU by a few kernels, as PyTorch's do there.

#include <ATen/core/ivalue.h>  // before torch: clang wants IValue complete there
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

namespace lockstep {

/// torch::optim::SGD with a quicker step on CUDA.
///
/// Use:
///   const auto options = torch::optim::SGDOptions(0.1).momentum(0.9);
///   lockstep::ForeachSGD optimizer(net->parameters(), options);
///   loss_of(model(images), labels).backward();
///   optimizer.step();
///
/// libtorch's own step starts some kernels for each parameter. A network of many small parameters
/// then waits for the processor, not for the GPU. This step calls ATen's _foreach functions, which
/// take a list of tensors. PyTorch's optimizers are called `foreach` where they do so, and that is
/// their default on CUDA.
///
/// Options, state and checkpoints are those of torch::optim::SGD. The step is libtorch's own where
/// a parameter is on no CUDA device, or a gradient is sparse. So bits on CPUs are the same. On
/// CUDA the arithmetic is the same, but a kernel may round once where two rounded twice.
///
/// Threads: as torch::optim::SGD.
/// Cost: with momentum three kernels for each 64 to 110 tensors, where libtorch starts three for
/// each tensor. Weight decay and Nesterov's momentum each need a temporary copy of the gradients.
/// Errors: as torch::optim::SGD.
/// Source: torch.optim.SGD, foreach=True.
class ForeachSGD final : public torch::optim::SGD {
 public:
  using torch::optim::SGD::SGD;
  at::Tensor step(LossClosure closure = nullptr) override;
};

/// torch::optim::Adam with a quicker step on CUDA; see ForeachSGD. With amsgrad the step is
/// libtorch's own. Cost: a temporary copy of the weights, and one more with weight decay.
/// Source: torch.optim.Adam, foreach=True.
class ForeachAdam final : public torch::optim::Adam {
 public:
  using torch::optim::Adam::Adam;
  at::Tensor step(LossClosure closure = nullptr) override;
};

/// torch::optim::AdamW with a quicker step on CUDA; see ForeachAdam. Weight decay costs no copy.
/// Source: torch.optim.AdamW, foreach=True.
class ForeachAdamW final : public torch::optim::AdamW {
 public:
  using torch::optim::AdamW::AdamW;
  at::Tensor step(LossClosure closure = nullptr) override;
};

}  // namespace lockstep
