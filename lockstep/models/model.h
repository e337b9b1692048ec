#pragma once
// The parts of networks that are built in.

#include <vector>

#include "lockstep/model.h"

namespace lockstep {

// Legend of the shapes in this folder: N images, C channels, H rows, W columns, K classes.

/// The part of a network that computes features of images.
/// forward: (N, 3, H, W) -> (N, out_channels(), H', W').
class Backbone : public Model {
 public:
  virtual int64_t out_channels() const = 0;
};

/// A backbone with accessible inner feature maps, from fine to coarse.
class FeatureBackbone : public Backbone {
 public:
  /// (N, 3, H, W) -> one (N, feature_channels()[i], H_i, W_i) for each i.
  virtual std::vector<at::Tensor> features(at::Tensor input) = 0;
  virtual std::vector<int64_t> feature_channels() const = 0;

  /// The last of features().
  at::Tensor forward(at::Tensor input) final { return features(std::move(input)).back(); }
  int64_t out_channels() const final { return feature_channels().back(); }
};

/// The part between backbone and head: from feature maps to one tensor.
class Neck : public torch::nn::Module {
 public:
  virtual at::Tensor forward(std::vector<at::Tensor> features) = 0;
  virtual int64_t out_channels() const = 0;
};

}  // namespace lockstep
