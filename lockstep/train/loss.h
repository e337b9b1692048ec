#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/train/config/config.h"

namespace lockstep {

/// Cross entropy of logits (N, K) and labels (N), the mean over the batch. With smoothing s the
/// target is (1 - s) for the label plus s / K for every class. Returns a scalar.
/// Source: Szegedy et al., CVPR 2016, section 7; torch.nn.CrossEntropyLoss.
at::Tensor classification_loss(const at::Tensor& logits, const at::Tensor& labels,
                               const LossConfig& config);

}  // namespace lockstep
