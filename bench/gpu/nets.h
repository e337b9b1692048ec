#pragma once
// The networks of bench_gpu_step, layer for layer those of bench/peers/ddp_step.py.

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

namespace lockstep::bench {

struct Net : torch::nn::Module {
  virtual at::Tensor forward(at::Tensor input) = 0;
};

struct GpuModel {
  std::shared_ptr<Net> net;
  std::vector<int64_t> input;  ///< The batch's shape.
};

/// "resnet50" (CIFAR's stem) or "transformer25m". Errors: kInvalidArgument.
GpuModel make_gpu_model(const std::string& name);

}  // namespace lockstep::bench
