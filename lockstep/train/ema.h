#pragma once
// A moving average of a network's weights, evaluated and saved in their place.

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/weights.h"

namespace lockstep::inline internal {

/// The average a over all parameters and floating buffers w of a module (batch norm's statistics
/// too). It begins as a copy of them. update() number n, from 1:
///   d = decay * (1 - exp(-n / 2000)),  a = d * a + (1 - d) * w
/// so that the first few thousand steps forget the start quickly. Values of a frozen parameter or a
/// buffer that equal their average leave it as it is, to the bit. (d and 1 - d are rounded, so the
/// formula would not.) Like MindOCR, the trainer updates after every micro-step that was not
/// dropped. With parallel.global_batch it does so after every optimizer step: the average must not
/// depend on the number of ranks. With parallel.virtual_ranks, batch norm's statistics change with
/// the optimizer step alone. The micro-steps before it average unchanged statistics.
///
/// All ranks have equal weights and so equal averages. The averages of batch norm's statistics must
/// be made equal before an evaluation, as those of the network.
/// With MasterWeights it is made of their module(). Call collect_buffers() before update() and
/// publish_all() after swap().
/// Memory: a copy of the module. Cost of update() and swap(): one pass over it.
/// Source: MindOCR, mindocr/utils/ema.py.
class Ema {
 public:
  /// The module must keep its tensors.
  Ema(const torch::nn::Module& module, double decay);

  void update();

  /// Exchanges the average and the module's values, in place: call it before and again after an
  /// evaluation. update() in between is an error (kInternal).
  void swap();
  bool swapped() const { return swapped_; }

  int64_t updates() const { return updates_; }

  /// Copies of the average under the module's names, and of the number of updates as "ema.updates",
  /// whether or not it is swapped in.
  TensorMap state() const;
  /// The same, but the average's own tensors: the next update() or swap() changes them.
  TensorMap tensors() const;
  /// Errors, nothing changed: kCorrupt naming `file` and tensor: missing, left over, other shape or
  /// dtype; kInternal while swapped in.
  void load(const TensorMap& state, const std::string& file);

 private:
  struct Pair {
    std::vector<std::string> names;  ///< Several of a tied weight, whose average is one.
    at::Tensor weight;               ///< The module's own.
    at::Tensor average;              ///< While swapped in: the module's values.
    bool learns;                     ///< A parameter that gets gradients.
  };
  static void average(Pair& pair, double kept);

  const double decay_;
  int64_t updates_ = 0;
  bool swapped_ = false;
  std::vector<Pair> pairs_;
};

}  // namespace lockstep::inline internal
