#include "lockstep/train/optim/clip.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <vector>

namespace lockstep {

double clip_gradients(std::span<const at::Tensor> parameters, double max_norm) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> norms;
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) norms.push_back(at::linalg_vector_norm(parameter.grad()));
  }
  double sum = 0;
  if (!norms.empty()) {  // all norms cross from a device at once
    const at::Tensor all = at::stack(norms).to(at::kCPU, at::kDouble);
    for (const double norm : std::span(all.data_ptr<double>(), norms.size())) sum += norm * norm;
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
