#pragma once
// A network as the trainer sees it: a module with one tensor in and one out.
//
//   struct Net final : lockstep::Model {
//     torch::nn::Linear linear = register_module("linear", torch::nn::Linear(8, 10));
//     at::Tensor forward(at::Tensor input) override { return linear->forward(input); }
//   };

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace lockstep {

class Model : public torch::nn::Module {
 public:
  /// (N, ...) -> (N, ...): `input` is Batch::images.
  virtual at::Tensor forward(at::Tensor input) = 0;
  /// The device of its parameters; it has at least one.
  at::Device device() const { return parameters().front().device(); }
};

}  // namespace lockstep
