#pragma once
// The module of the values that PyTorch's DistributedDataParallel computed.

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <vector>

namespace lockstep::testing {

using torch::Tensor;

/// a: Linear(2, 2), then b or c: Linear(2, 1). Element k of parameter i is 0.1 * (1 + i + k).
struct TwoHeadsImpl : torch::nn::Module {
  torch::nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
  TwoHeadsImpl() {
    a = register_module("a", torch::nn::Linear(2, 2));
    b = register_module("b", torch::nn::Linear(2, 1));
    c = register_module("c", torch::nn::Linear(2, 1));
    const torch::NoGradGuard no_grad;
    int64_t i = 0;
    for (auto& parameter : parameters()) {
      parameter.copy_(0.1 * (1 + i++ + torch::arange(parameter.numel())).view_as(parameter));
    }
  }
  Tensor forward(const Tensor& x, bool use_b, bool use_c) {
    const Tensor hidden = a(x);
    Tensor out = torch::zeros({1});
    if (use_b) out = out + b(hidden).sum();
    if (use_c) out = out + c(hidden).sum();
    return out;
  }
};
TORCH_MODULE(TwoHeads);

inline Tensor input_of(int rank) {
  return torch::tensor({{1.0F, 2.0F}}) * (rank + 1);
}

inline void expect_near(const Tensor& value, const std::vector<float>& wanted, const char* what) {
  const Tensor expected = torch::tensor(wanted);
  EXPECT_TRUE(torch::allclose(value.flatten(), expected, 1e-5, 1e-6)) << what << "\n" << value;
}

}  // namespace lockstep::testing
