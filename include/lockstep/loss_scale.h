#pragma once
// By what losses are multiplied before backward, so that small gradients do not vanish in a 16-bit
// type: a state machine without tensors. Its state is part of a checkpoint.

#include <cstdint>
#include <optional>

namespace lockstep {

/// Static: always init_scale. Dynamic: as PyTorch's GradScaler (whose names these are) and
/// MindSpore's DynamicLossScaleUpdateCell (scale_factor f is growth_factor f and backoff_factor
/// 1 / f, scale_window is growth_interval), which decide alike but for `min_scale`.
struct LossScaleOptions {
  bool dynamic = false;
  double init_scale = 1;           ///< At least 2^-126, at most the largest float32.
  double growth_factor = 2;        ///< Greater than 1.
  double backoff_factor = 0.5;     ///< In (0, 1).
  int64_t growth_interval = 2000;  ///< Steps without overflow, one after the other; at least 1.
  double min_scale = 1;            ///< MindSpore's floor; 0, as PyTorch has it, for none.

  /// Errors: kInvalidArgument naming the field and its value.
  void validate() const;
};

struct LossScaleState {
  double scale = 1;
  int64_t clean_steps = 0;  ///< Since the scale last changed, or an overflow came.
  int64_t overflows = 0;    ///< Steps with one, since the start of training.
  bool operator==(const LossScaleState&) const = default;
};

/// Where a run starts: `saved` is what an earlier part of it left, if there is one. A static scale
/// is the options' in any case; of what was saved only the count goes on.
LossScaleState first_loss_scale(const LossScaleOptions& options,
                                const std::optional<LossScaleState>& saved = {});

/// After an optimizer step whose gradients did or did not overflow. With an overflow the scale is
/// multiplied by backoff_factor, but stays at least min_scale (or what it is, if below). After
/// growth_interval clean steps it is multiplied by growth_factor, unless float32 could not hold it.
/// Sources: PyTorch, aten/src/ATen/native/cuda/AmpKernels.cu (amp_update_scale); MindSpore,
/// mindspore/nn/wrap/loss_scale.py (DynamicLossScaleUpdateCell).
LossScaleState next_loss_scale(LossScaleState state, bool overflow,
                               const LossScaleOptions& options);

}  // namespace lockstep
