#pragma once
// A GradScaler scales losses for 16-bit types, in a training loop of one's own.

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>

#include "lockstep/amp_policy.h"
#include "lockstep/process_group.h"

namespace torch::optim {
class Optimizer;
}

namespace lockstep {

/// PyTorch's GradScaler, for ranks that train together.
///
/// Use:
///   lockstep::GradScaler scaler(group);
///   scaler.scale(loss_of(model(images), labels)).backward();
///   scaler.unscale(optimizer);                     // only to use gradients: to clip them
///   scaler.step(optimizer);                        // skipped if gradients overflowed
///   scaler.update();
///
/// The loss is multiplied by a scale before backward(), so that small gradients do not vanish in
/// float16. Before the optimizer's step the gradients are divided by it. If a gradient is infinite
/// or not a number on any rank, all ranks skip the step, and a dynamic scale shrinks; see
/// next_loss_scale(). All ranks have the same scale and skip the same steps.
///
/// Several optimizers may share a scaler: call step() for each, then update() once.
///
/// Threads: one thread calls a scaler, and no other one its group meanwhile.
/// Cost: once per step and optimizer one reduction of 4 bytes and two passes over the gradients.
/// One pass finds overflows; the other one divides, unless the scale is 1.
/// Errors: kInvalidArgument for calls in another order; those of the group.
class GradScaler {
 public:
  /// PyTorch's defaults: 65536 at first, halved by an overflow, doubled after 2000 steps without
  /// one.
  static LossScaleOptions defaults() {
    return {.dynamic = true, .init_scale = 65536, .min_scale = 0};
  }

  /// Every rank gives the same options. Errors: kInvalidArgument naming a field.
  explicit GradScaler(ProcessGroup group, const LossScaleOptions& options = defaults());

  /// `loss` times the scale; call backward() on the result.
  at::Tensor scale(const at::Tensor& loss) const { return loss.mul(state_.scale); }

  /// Collective. Divides the gradients of the optimizer's parameters by the scale, once per step.
  /// Returns whether all of them are finite on all ranks.
  bool unscale(torch::optim::Optimizer& optimizer);
  /// Collective, unless unscale() was called. Runs the optimizer's step() on unscaled gradients, or
  /// skips it if they overflowed on any rank. Returns whether the step ran.
  bool step(torch::optim::Optimizer& optimizer);
  /// Sets the scale of the next step. Call it after the steps of all optimizers.
  void update();

  /// State to save with weights and optimizer; the same on all ranks.
  const LossScaleState& state() const { return state_; }
  /// Continues from a saved state, between steps; a static scale restores only the count of
  /// overflows.
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
