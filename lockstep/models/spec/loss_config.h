#pragma once
// The losses of text, as in a configuration's section `loss`.

#include <cstdint>

namespace lockstep::inline internal {

/// DBLoss: dice(thresh_binary) + l1_scale * L1(thresh) + bce_scale * balanced cross
/// entropy(binary).
struct DbLossConfig {
  double eps = 1e-6;          ///< Added to each denominator.
  double l1_scale = 10;       ///< Weight of the threshold map's L1.
  double bce_scale = 5;       ///< Weight of the binary map's term.
  bool dice_for_bce = false;  ///< bce_replace: diceloss. The binary map's term is dice_loss(), too.
};

/// CTCLoss. batch_size is only checked: the output defines it.
struct CtcLossConfig {
  int64_t pred_seq_len = 26;   ///< Number of leading frames of the network's output that count.
  int64_t max_label_len = 25;  ///< Less than pred_seq_len.
};

}  // namespace lockstep::inline internal
