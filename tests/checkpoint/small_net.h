#pragma once

#include <ATen/Functions.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/optimizer.h>

#include <cstring>

namespace lockstep::inline internal {

/// It has all parts of a checkpoint: parameters, running statistics, a counter, random numbers.
struct SmallNet : torch::nn::Module {
  explicit SmallNet(int64_t width = 8)
      : first(register_module("first", torch::nn::Linear(4, width))),
        norm(register_module("norm", torch::nn::BatchNorm1d(width))),
        last(register_module("last", torch::nn::Linear(width, 2))) {}

  at::Tensor forward(const at::Tensor& x) {
    return last(at::dropout(norm(first(x)).relu(), 0.3, is_training()));
  }

  torch::nn::Linear first;
  torch::nn::BatchNorm1d norm;
  torch::nn::Linear last;
};

/// `count` steps on data that depend on the step number alone.
inline void train(SmallNet& net, torch::optim::Optimizer& optimizer, int first_step, int count) {
  for (int step = first_step; step < first_step + count; ++step) {
    const at::Tensor x = at::sin(at::arange(64).reshape({16, 4}).to(at::kFloat) + step);
    optimizer.zero_grad();
    net.forward(x).square().mean().backward();
    optimizer.step();
  }
}

/// Compares bits, so that -0 and NaN count too.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         std::memcmp(a.contiguous().data_ptr(), b.contiguous().data_ptr(), a.nbytes()) == 0;
}

}  // namespace lockstep::inline internal
