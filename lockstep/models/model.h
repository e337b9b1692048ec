#pragma once
// The parts of networks that are built in.

#include <vector>

#include "lockstep/model.h"

namespace lockstep::inline internal {

// Legend of the shapes in this folder: N images, C channels, H rows, W columns, K classes.

/// The part between backbone and head: from feature maps to one tensor.
class Neck : public torch::nn::Module {
 public:
  virtual at::Tensor forward(std::vector<at::Tensor> features) = 0;
  virtual int64_t out_channels() const = 0;
};

}  // namespace lockstep::inline internal
