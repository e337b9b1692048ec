#pragma once
// A Model is a network as the trainer sees it: a module with one tensor in and one out, or with
// several. A Backbone is the part of one that computes feature maps.
//
// Use:
//   struct Net final : lockstep::Model {
//     torch::nn::Linear linear = register_module("linear", torch::nn::Linear(8, 10));
//     at::Tensor forward(at::Tensor input) override { return linear->forward(input); }
//   };
//
// Threads: the trainer calls a network in one thread, so it needs no lock. Nothing is collective.
// Cost: that of the network; device() lists all parameters.
// Errors: kInvalidArgument where nothing is overridden; exceptions of the network end the run.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>  // before torch/nn: clang wants IValue complete there
#include <torch/nn/module.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "lockstep/named_tensors.h"

namespace lockstep {

class Model : public torch::nn::Module {
 public:
  /// (N, ...) -> (N, ...): `input` is Batch::images. A network with several inputs or outputs
  /// overrides compute() instead. Errors: kInvalidArgument if it is not overridden.
  virtual at::Tensor forward(at::Tensor input);
  /// `inputs`: Batch::images, then Batch::more_inputs, with their names. The result, one tensor or
  /// several, goes to loss and metric. It may have names: `return {{"class", k}, {"box", b}};`.
  /// Errors: kInvalidArgument for several inputs if it is not overridden.
  virtual Tensors compute(const Tensors& inputs);
  /// The device of its parameters; it has at least one.
  at::Device device() const { return parameters().front().device(); }
};

/// The part of a network that computes feature maps of images, from fine to coarse. Networks for
/// text take one of a program's own: BackbonePart of registry.h.
///
/// Use:
///   struct Coarse final : lockstep::Backbone {
///     torch::nn::Conv2d conv =
///         register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 4).stride(4)));
///     lockstep::Tensors features(at::Tensor input) override { return {conv(input)}; }
///     std::vector<int64_t> feature_channels() const override { return {8}; }
///   };
class Backbone : public Model {
 public:
  /// (N, 3, H, W) -> one (N, feature_channels()[i], H_i, W_i) for each i.
  virtual Tensors features(at::Tensor input) = 0;
  /// The same after each call; all at least 1.
  virtual std::vector<int64_t> feature_channels() const = 0;

  /// The last of features().
  at::Tensor forward(at::Tensor input) final { return features(std::move(input)).back(); }
  int64_t out_channels() const { return feature_channels().back(); }
};

}  // namespace lockstep
