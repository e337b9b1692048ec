#pragma once
// The losses of text, as a configuration's section `loss` has them.

#include <cstdint>

namespace lockstep {

/// DBLoss: dice(thresh_binary) + l1_scale * L1(thresh) + bce_scale * balanced cross
/// entropy(binary).
struct DbLossConfig {
  double eps = 1e-6;          ///< Added to each denominator.
  double l1_scale = 10;       ///< Weight of the threshold map's L1.
  double bce_scale = 5;       ///< Weight of the binary map's term.
  bool dice_for_bce = false;  ///< bce_replace: diceloss. The binary map's term is dice_loss(), too.
};

/// CTCLoss. batch_size is only checked: the output has it.
struct CtcLossConfig {
  int64_t pred_seq_len = 26;   ///< Frames that count: the first so many of the network's output.
  int64_t max_label_len = 25;  ///< Less than pred_seq_len.
};

}  // namespace lockstep
