#pragma once
// Scaled losses for training in a 16-bit type, in a training loop of one's own.

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>

#include "lockstep/loss_scale.h"
#include "lockstep/process_group.h"

namespace torch::optim {
class Optimizer;
}

namespace lockstep {

/// As PyTorch's GradScaler, for ranks that train together:
///
///   GradScaler scaler(group);
///   ...
///   scaler.scale(loss_of(model(images), labels)).backward();
///   scaler.unscale(optimizer);                     // only where gradients are looked at: to clip
///   scaler.step(optimizer);                        // them; left out where they overflowed
///   scaler.update();
///
/// Small gradients do not vanish in float16, because the loss is multiplied by a number before
/// backward(), and gradients are divided by it before the optimizer sees them. A step in which one
/// of them is no number, or infinite, is left out on all ranks if it is so on any, and a dynamic
/// scale shrinks; see next_loss_scale(). All ranks have the same scale and leave out the same
/// steps.
///
/// Several optimizers may share a scaler: each has its step(), then one update() follows. Each
/// collective call costs one reduction of 4 bytes, and a pass over the gradients.
/// Errors: kInvalidArgument where calls come in another order; those of the group.
class GradScaler {
 public:
  /// PyTorch's: 65536 to begin with, halved by an overflow, doubled after 2000 steps without.
  static LossScaleOptions defaults() {
    return {.dynamic = true, .init_scale = 65536, .min_scale = 0};
  }

  /// Every rank gives the same options. Errors: kInvalidArgument naming a field of them.
  explicit GradScaler(ProcessGroup group, const LossScaleOptions& options = defaults());

  /// `loss` times the scale, which is what backward() is called of.
  at::Tensor scale(const at::Tensor& loss) const { return loss.mul(state_.scale); }

  /// Collective. Divides the gradients of the optimizer's parameters by the scale, once a step, and
  /// says whether all of them are finite on all ranks.
  bool unscale(torch::optim::Optimizer& optimizer);
  /// Collective, unless unscale() was called. The optimizer's step() on unscaled gradients, or
  /// nothing where they overflowed on any rank. Returns whether it was made.
  bool step(torch::optim::Optimizer& optimizer);
  /// After the steps of all optimizers: the scale of the next step.
  void update();

  /// To be saved with weights and optimizer, the same on all ranks.
  const LossScaleState& state() const { return state_; }
  /// Goes on from a saved one, between steps; with a static scale only its count does.
  void load_state(const LossScaleState& saved) { state_ = first_loss_scale(options_, saved); }

 private:
  struct Seen {
    bool finite = true;
    bool stepped = false;
  };

  ProcessGroup group_;
  LossScaleOptions options_;
  LossScaleState state_;
  std::map<const torch::optim::Optimizer*, Seen> seen_;  ///< Since the last update().
};

}  // namespace lockstep
