#include "lockstep/amp/master_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <torch/nn/modules/batchnorm.h>

#include <map>

namespace lockstep::inline internal {
namespace {

using torch::nn::Module;

bool is_batch_norm(const Module& module) {
  if (module.as<torch::nn::BatchNorm1d>() || module.as<torch::nn::BatchNorm2d>() ||
      module.as<torch::nn::BatchNorm3d>()) {
    return true;
  }
  return module.named_buffers(/*recurse=*/false).contains("running_mean");
}

const c10::TensorImpl* key_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl();
}

void cast_tensor(at::Tensor tensor, at::ScalarType dtype) {
  if (tensor.defined() && tensor.is_floating_point())
    tensor.set_data(tensor.variable_data().to(dtype));
}

/// Plain modules that hold, under the names of `module`, the result of `own` for each tensor.
template <class Own>
std::shared_ptr<Module> twin_of(const Module& module, const Own& own) {
  auto twin = std::make_shared<Module>();
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    twin->register_parameter(item.key(), own(item.value()), item.value().requires_grad());
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    twin->register_buffer(item.key(), own(item.value()));
  }
  for (const auto& child : module.named_children()) {
    twin->register_module(child.key(), twin_of(*child.value(), own));
  }
  return twin;
}

}  // namespace

void cast_module(Module& module, AmpLevel level, at::ScalarType dtype) {
  if (level == AmpLevel::kO0 || level == AmpLevel::kO1) return;
  if (level == AmpLevel::kO2 && is_batch_norm(module)) return;
  for (const auto& parameter : module.parameters(/*recurse=*/false)) cast_tensor(parameter, dtype);
  for (const auto& buffer : module.buffers(/*recurse=*/false)) cast_tensor(buffer, dtype);
  for (const auto& child : module.children()) cast_module(*child, level, dtype);
}

MasterWeights::MasterWeights(Module& net, AmpLevel level, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  std::map<const c10::TensorImpl*, at::Tensor> values;  // before the cast
  for (const auto& tensor : net.parameters()) values[key_of(tensor)] = tensor.variable_data();
  for (const auto& tensor : net.buffers()) values[key_of(tensor)] = tensor.variable_data();
  cast_module(net, level, dtype);
  std::map<const c10::TensorImpl*, at::Tensor> masters;  // a tensor may have several names
  const auto pair_up = [&](const at::Tensor& tensor, std::vector<Pair>& pairs) {
    const at::Tensor& before = values.at(key_of(tensor));
    if (tensor.scalar_type() == before.scalar_type() || masters.contains(key_of(tensor))) return;
    pairs.push_back({tensor, before.to(at::kFloat)});
    masters[key_of(tensor)] = pairs.back().master;
  };
  for (const auto& tensor : net.parameters()) pair_up(tensor, parameters_);
  for (const auto& tensor : net.buffers()) pair_up(tensor, buffers_);
  twin_ = twin_of(net, [&](const at::Tensor& tensor) {
    const auto master = masters.find(key_of(tensor));
    return master == masters.end() ? tensor : master->second;
  });
}

void MasterWeights::take_gradients() {
  const at::NoGradGuard no_grad;
  for (auto& [net, master] : parameters_) {
    at::Tensor& grad = master.mutable_grad();
    if (!net.grad().defined()) {
      grad.reset();
      continue;
    }
    if (!grad.defined()) grad = at::empty_like(master);
    grad.copy_(net.grad());
  }
}

void MasterWeights::publish() {
  const at::NoGradGuard no_grad;
  for (auto& [net, master] : parameters_) net.copy_(master);
}

void MasterWeights::publish_all() {
  const at::NoGradGuard no_grad;
  publish();
  for (auto& [net, master] : buffers_) net.copy_(master);
}

void MasterWeights::collect_buffers() {
  const at::NoGradGuard no_grad;
  for (auto& [net, master] : buffers_) master.copy_(net);
}

}  // namespace lockstep::inline internal
