#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <utility>

namespace lockstep::inline internal {

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

}  // namespace lockstep::inline internal
