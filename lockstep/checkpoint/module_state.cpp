#include "lockstep/weights.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include "lockstep/base/text.h"
#include "lockstep/checkpoint/tensor_types.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

std::vector<std::string> names_of(const TensorMap& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

}  // namespace

TensorMap module_tensors(const torch::nn::Module& module) {
  TensorMap tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) {
    if (item.value().defined()) tensors.emplace(item.key(), item.value());
  }
  return tensors;
}

void check_module(const torch::nn::Module& module, const TensorMap& tensors,
                  const std::string& file) {
  const TensorMap own = module_tensors(module);
  for (const auto& [name, tensor] : own) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) throw_corrupt_tensor(file, name, "of the network is missing");
    const at::Tensor& stored = found->second;
    if (stored.sizes() != tensor.sizes()) {
      throw_corrupt_tensor(
          file, name,
          fmt::format("has shape {}, the network's has {}", stored.sizes(), tensor.sizes()));
    }
    if (stored.scalar_type() != tensor.scalar_type()) {
      throw_corrupt_tensor(
          file, name,
          fmt::format("is {}, the network's is {}", at::toString(stored.scalar_type()),
                      at::toString(tensor.scalar_type())));
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (own.contains(name)) continue;
    throw_corrupt_tensor(file, name,
                         "is not one of the network's" + did_you_mean(name, names_of(own)));
  }
}

void load_module(torch::nn::Module& module, const TensorMap& tensors, const std::string& file) {
  check_module(module, tensors, file);
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : module_tensors(module)) tensor.copy_(tensors.at(name));
}

}  // namespace lockstep
