#include "lockstep/train/loss.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>

namespace lockstep {

at::Tensor classification_loss(const at::Tensor& logits, const at::Tensor& labels,
                               const LossConfig& config) {
  constexpr int64_t kIgnoreNone = -100;  // libtorch's default
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Mean, kIgnoreNone,
                                config.smoothing);
}

}  // namespace lockstep
