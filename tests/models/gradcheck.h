#pragma once
// Compares gradients with central differences, in float64.

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <vector>

namespace lockstep::inline internal {

using ScalarFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Moves each element of each input by +-step; inputs are contiguous float64 tensors.
inline void expect_gradients(const ScalarFunction& f, const std::vector<at::Tensor>& inputs,
                             double step = 1e-6, double tolerance = 1e-6) {
  std::vector<at::Tensor> leaves;
  for (const auto& input : inputs) leaves.push_back(input.clone().set_requires_grad(true));
  const auto gradients = torch::autograd::grad({f(leaves)}, leaves);
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto moved = inputs;
    moved[i] = inputs[i].clone();
    double* const values = moved[i].data_ptr<double>();
    const at::Tensor analytic = gradients[i].contiguous();
    for (int64_t j = 0; j < inputs[i].numel(); ++j) {
      const double old = values[j];
      values[j] = old + step;
      const double above = f(moved).item<double>();
      values[j] = old - step;
      const double below = f(moved).item<double>();
      values[j] = old;
      const double numeric = (above - below) / (2 * step);
      ASSERT_NEAR(analytic.data_ptr<double>()[j], numeric, tolerance * (1 + std::abs(numeric)))
          << "input " << i << ", element " << j;
    }
  }
}

}  // namespace lockstep::inline internal
