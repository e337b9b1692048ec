#include "lockstep/train/optim/clip.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <cmath>

namespace lockstep {

double clip_gradients(std::span<const at::Tensor> parameters, double max_norm) {
  const at::NoGradGuard no_grad;
  double sum = 0;
  for (const auto& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    const double norm = at::linalg_vector_norm(parameter.grad()).item().toDouble();
    sum += norm * norm;
  }
  const double norm = std::sqrt(sum);
  const double scale = max_norm / (norm + 1e-6);
  if (scale < 1) {
    for (const auto& parameter : parameters) {
      if (parameter.grad().defined()) parameter.grad().mul_(scale);
    }
  }
  return norm;
}

}  // namespace lockstep
