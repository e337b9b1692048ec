#pragma once
// Connectionist temporal classification: aligns a sequence of labels with a longer one of frames.
// Source: Graves et al., "Connectionist Temporal Classification", ICML 2006.

#include <memory>

#include "lockstep/models/loss/loss.h"
#include "lockstep/models/spec/loss_config.h"

namespace lockstep::inline internal {

/// The mean over the images of -log p(label), not divided by the labels' lengths (PyTorch's "mean"
/// divides). The blank is the last class; equal neighbours are merged.
/// output: logits (W, N, K), W >= pred_seq_len frames. targets: text_seq (N, L) of any integer
/// type: classes, then padding up to the end of the row, any values from K - 1 on. A row of padding
/// is an empty label. L is free.
///
/// A label may fit no alignment: it is longer than pred_seq_len, where an immediately repeated
/// class counts one more. It adds 0 to the sum and no gradient; its true loss is infinite. Cost:
/// O(W N L), and one copy of the labels to the host.
///
/// Errors: kInvalidArgument for max_label_len >= pred_seq_len (at construction), fewer frames, a
/// class below 0, a class after padding.
std::unique_ptr<Loss> make_ctc_loss(const CtcLossConfig& options);

}  // namespace lockstep::inline internal
