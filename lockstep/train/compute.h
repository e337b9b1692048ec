#pragma once
// The network's computation with all its inputs and outputs.

#include <memory>
#include <utility>

#include "lockstep/autocast.h"
#include "lockstep/batch.h"
#include "lockstep/model.h"

namespace lockstep {

/// forward_at() for several tensors: `level` applies to the floating-point ones.
template <class Net>
Tensors compute_at(AmpLevel level, Tensors inputs, Net&& net) {
  if (level == AmpLevel::kO0) return net(inputs);
  const auto device = inputs.front().device().type();
  const auto cast = [](Tensors& tensors, at::ScalarType type) {
    for (auto& tensor : tensors) {
      if (tensor.is_floating_point()) tensor = tensor.to(type);
    }
  };
  Tensors outputs;
  if (level == AmpLevel::kO1) {
    const AutocastGuard autocast(device, low_precision(device));
    outputs = net(inputs);
  } else {
    cast(inputs, low_precision(device));
    outputs = net(inputs);
  }
  cast(outputs, at::kFloat);
  return outputs;
}

/// A module as DistributedDataParallel calls it: a forward pass is any computation with it.
class CalledModule {
 public:
  explicit CalledModule(std::shared_ptr<torch::nn::Module> module) : module_(std::move(module)) {}
  template <class Body>
  auto forward(Body&& body) {
    return std::forward<Body>(body)();
  }
  std::shared_ptr<torch::nn::Module> ptr() const { return module_; }
  CalledModule* operator->() { return this; }

 private:
  std::shared_ptr<torch::nn::Module> module_;
};

}  // namespace lockstep
