#pragma once
// Losses of a classifier beside cross entropy: means over a batch of N samples and K classes.
//
// `logits`: (N, K), the network's. `targets`: labels (N), or (N, K) with a number from 0 to 1 for
// each class. Errors: kInvalidArgument if the two do not fit together.

#include <ATen/core/Tensor.h>

#include "lockstep/registry.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// With p of the target's class: -alpha (1 - p)^gamma log(p). Targets (N, K) weigh the classes.
/// Source: Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017, with softmax for the
/// classes.
at::Tensor focal_loss(const at::Tensor& logits, const at::Tensor& targets,
                      const FocalConfig& config);

/// Binary cross entropy of each class by itself: torch.nn.BCEWithLogitsLoss. Labels (N) become
/// zeros and a one; (N, K) may have several classes a sample.
at::Tensor bce_loss(const at::Tensor& logits, const at::Tensor& targets, const BceConfig& config);

/// See DistillationConfig. `teacher`: logits of the trained network, (N, K), without a graph.
at::Tensor distillation_loss(const at::Tensor& logits, const at::Tensor& targets,
                             const at::Tensor& teacher, const DistillationConfig& config);

/// What a configuration of a built-in loss computes from the network's outputs and the targets. Of
/// distillation it is the part without the teacher, which an evaluation has.
LossFunction class_loss(const LossConfig& config);

}  // namespace lockstep::inline internal
