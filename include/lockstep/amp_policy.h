#pragma once
// This header names the levels of mixed precision as Apex and MindOCR do. It also computes the
// factor that keeps small gradients from vanishing.
//
// Use:
//   const auto level = lockstep::parse_amp_level("O1");  // for forward_at() of autocast.h
//   const lockstep::LossScaleOptions options = {.dynamic = true, .init_scale = 65536};
//   lockstep::LossScaleState state = lockstep::first_loss_scale(options);
//   state = lockstep::next_loss_scale(state, /*overflow=*/true, options);
//   std::printf("%s, %.0f\n", lockstep::to_string(level).c_str(), state.scale);  // O1, 32768
//
// Threads: any; no function keeps state. Cost: some comparisons of numbers or short texts.
// Errors: kInvalidArgument, of parse_amp_level() and validate() alone. The other functions take the
// options unchecked.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// The operations that compute in a 16-bit type. Weights, optimizer state, loss and checkpoints are
/// float32 at every level.
enum class AmpLevel : uint8_t {
  kO0,  ///< None.
  kO1,  ///< Those that libtorch's autocast lists: convolutions and matrix products.
  kO2,  ///< All but batch norm, whose scales, shifts and statistics stay float32.
  kO3,  ///< All. As in MindOCR the optimizer still updates float32 weights; Apex's O3 keeps none.
};

/// "O0" ... "O3".
const std::vector<std::string>& amp_level_names();
const std::string& to_string(AmpLevel level);
/// Errors: kInvalidArgument naming the known ones.
AmpLevel parse_amp_level(const std::string& name);

// The factor on losses before backward(), so that small gradients do not vanish in a 16-bit type: a
// state machine without tensors. Its state is part of a checkpoint.

/// Static: always init_scale. Dynamic: PyTorch's GradScaler (with its names) and MindSpore's
/// DynamicLossScaleUpdateCell, which differ only in `min_scale`. MindSpore's scale_factor f is
/// growth_factor f and backoff_factor 1 / f; its scale_window is growth_interval.
struct LossScaleOptions {
  bool dynamic = false;
  double init_scale = 1;           ///< At least 2^-126, at most the largest float32.
  double growth_factor = 2;        ///< Greater than 1.
  double backoff_factor = 0.5;     ///< In (0, 1).
  int64_t growth_interval = 2000;  ///< Consecutive steps without overflow; at least 1.
  double min_scale = 1;            ///< MindSpore's floor; 0 for none, as in PyTorch.

  /// Errors: kInvalidArgument naming the field and its value.
  void validate() const;
};

struct LossScaleState {
  double scale = 1;
  int64_t clean_steps = 0;  ///< Since the last change of the scale or the last overflow.
  int64_t overflows = 0;    ///< Steps with an overflow, since the start of training.
  bool operator==(const LossScaleState&) const = default;
};

/// The state at the start of a run: `saved` is that of an earlier part of the run, if there is one.
/// A static scale always comes from the options; only the count of overflows is restored.
LossScaleState first_loss_scale(const LossScaleOptions& options,
                                const std::optional<LossScaleState>& saved = {});

/// The state after an optimizer step, with or without overflow. An overflow multiplies the scale by
/// backoff_factor, with min_scale as the lower bound (a scale already below it stays). After
/// growth_interval clean steps it is multiplied by growth_factor, unless the result exceeds
/// float32.
/// Sources: PyTorch, aten/src/ATen/native/cuda/AmpKernels.cu (amp_update_scale); MindSpore,
/// mindspore/nn/wrap/loss_scale.py (DynamicLossScaleUpdateCell).
LossScaleState next_loss_scale(LossScaleState state, bool overflow,
                               const LossScaleOptions& options);

}  // namespace lockstep
