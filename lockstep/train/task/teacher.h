#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/model.h"
#include "lockstep/train/config/config.h"

namespace lockstep {

/// A trained network whose outputs another one learns. It only computes: in evaluation mode, in
/// float32, without gradients. It is no part of the network that trains, so neither data parallel
/// nor checkpoints see it. One thread.
class Teacher {
 public:
  /// `config`: with its weights as `pretrained`, a file or a checkpoint. Errors: those of
  /// make_model() and load_weights(); kNotFound if the weights are not there.
  explicit Teacher(const ModelConfig& config);

  /// The first eight bytes of the SHA-256 over names and values of its parameters and buffers.
  /// Cost: about 1 ms per MB, once.
  uint64_t digest() const { return digest_; }

  /// Its first output for a batch's inputs, on their device; it moves there with the first batch.
  at::Tensor operator()(const std::vector<at::Tensor>& inputs);

 private:
  std::shared_ptr<Model> model_;
  uint64_t digest_ = 0;
};

}  // namespace lockstep
