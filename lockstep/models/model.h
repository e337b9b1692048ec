#pragma once
// What the trainer needs of a network, whatever it is made of.

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace lockstep {

/// A module with one tensor in and one out. Legend of the shapes in this folder: N images,
/// C channels, H rows, W columns, K classes.
class Model : public torch::nn::Module {
 public:
  virtual at::Tensor forward(at::Tensor input) = 0;
};

/// The part of a network that turns images into features.
/// forward: (N, 3, H, W) -> (N, out_channels(), H', W').
class Backbone : public Model {
 public:
  virtual int64_t out_channels() const = 0;
};

}  // namespace lockstep
