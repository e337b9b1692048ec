#pragma once
// The networks of `lockstep bench ddp`, usual for comparisons of training steps.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/models/model.h"

namespace lockstep::bench {

struct BenchModel {
  std::shared_ptr<Model> net;
  std::vector<int64_t> input;  ///< Shape of one rank's batch; the first size is the batch.
  int steps = 0;               ///< Measured steps, by default.
  int warmup = 0;
};

const std::vector<std::string>& model_names();

/// resnet50: CIFAR stem, 32 images of 3x32x32. mlp3m: 3 x (1024 -> 1024, ReLU), then 10, batch 64.
/// mlp50m: the same with 4096, batch 16. transformer25m: 12 layers of 416 channels with 8 heads,
/// batch 8 of 32 tokens. Errors: kInvalidArgument with the nearest name.
BenchModel make_model(const std::string& name);

}  // namespace lockstep::bench
