#include "lockstep/amp/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/view_as_real.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace lockstep::inline internal {

namespace {

/// The sum over all values, real and imaginary ones: it shows those that are NaN or infinite.
at::Tensor sum_of(const at::Tensor& tensor) {
  return at::sum(tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor,
                 at::kFloat);
}

/// Whether functions of lists are worth while: libtorch has kernels for lists on CUDA. Other
/// devices may have no such functions at all.
bool on_cuda(std::span<const at::Tensor> tensors) {
  return !tensors.empty() && std::all_of(tensors.begin(), tensors.end(),
                                         [](const at::Tensor& each) { return each.is_cuda(); });
}

at::TensorList list_of(std::span<const at::Tensor> tensors) {
  return {tensors.data(), tensors.size()};
}

}  // namespace

bool all_finite(std::span<const at::Tensor> tensors) {
  const at::NoGradGuard no_grad;
  std::map<at::DeviceIndex, std::vector<at::Tensor>> sums;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) sums[tensor.device().index()].push_back(sum_of(tensor));
  }
  bool finite = true;
  for (const auto& [device, of_device] : sums) {
    finite = finite && std::isfinite(at::stack(of_device).sum().item().toDouble());
  }
  if (finite) return true;
  // The sum itself may overflow.
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && !at::isfinite(tensor).all().item().toBool()) return false;
  }
  return true;
}

std::vector<at::Tensor> gradients_of(std::span<const at::Tensor> parameters) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

std::vector<at::Tensor> norms_of(std::span<const at::Tensor> tensors) {
  if (on_cuda(tensors)) return at::_foreach_norm(list_of(tensors));
  std::vector<at::Tensor> norms;
  for (const at::Tensor& tensor : tensors) norms.push_back(at::linalg_vector_norm(tensor));
  return norms;
}

void multiply(std::span<const at::Tensor> tensors, double factor) {
  const at::NoGradGuard no_grad;
  if (on_cuda(tensors)) return at::_foreach_mul_(list_of(tensors), factor);
  for (at::Tensor tensor : tensors) tensor.mul_(factor);
}

void unscale(std::span<const at::Tensor> gradients, double scale) {
  if (scale != 1) multiply(gradients, 1 / scale);
}

}  // namespace lockstep::inline internal
