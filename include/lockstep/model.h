#pragma once
// A network as the trainer sees it: a module with one tensor in and one out, or with several.
//
// Use:
//   struct Net final : lockstep::Model {
//     torch::nn::Linear linear = register_module("linear", torch::nn::Linear(8, 10));
//     at::Tensor forward(at::Tensor input) override { return linear->forward(input); }
//   };

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <vector>

namespace lockstep {

class Model : public torch::nn::Module {
 public:
  /// (N, ...) -> (N, ...): `input` is Batch::images. A network with several inputs or outputs
  /// overrides compute() instead. Errors: kInvalidArgument if it is not overridden.
  virtual at::Tensor forward(at::Tensor input);
  /// `inputs`: Batch::images, then Batch::more_inputs. The result, one tensor or several, goes to
  /// loss and metric. Errors: kInvalidArgument for several inputs if it is not overridden.
  virtual std::vector<at::Tensor> compute(const std::vector<at::Tensor>& inputs);
  /// The device of its parameters; it has at least one.
  at::Device device() const { return parameters().front().device(); }
};

}  // namespace lockstep
