#include "lockstep/train/ema.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <set>
#include <unordered_map>

#include "lockstep/checkpoint/tensor_types.h"
#include "lockstep/error.h"
#include "lockstep/weights.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kUpdates = "ema.updates";
constexpr double kWarmUp = 2000;

const at::Tensor& require(const TensorMap& state, const std::string& name,
                          const std::string& file) {
  const auto found = state.find(name);
  if (found == state.end()) throw_corrupt_tensor(file, name, "is missing");
  return found->second;
}

void check_fits(const at::Tensor& tensor, const at::Tensor& like, const std::string& name,
                const std::string& file) {
  if (tensor.sizes() == like.sizes() && tensor.scalar_type() == like.scalar_type()) return;
  throw_corrupt_tensor(file, name,
                       fmt::format("is {} of shape {}, the weight {} of shape {}",
                                   at::toString(tensor.scalar_type()), tensor.sizes(),
                                   at::toString(like.scalar_type()), like.sizes()));
}

}  // namespace

Ema::Ema(const torch::nn::Module& module, double decay) : decay_(decay) {
  std::unordered_map<const c10::TensorImpl*, size_t> known;
  for (const auto& [name, tensor] : module_tensors(module)) {
    if (!tensor.is_floating_point()) continue;
    const auto [at, is_new] = known.emplace(tensor.unsafeGetTensorImpl(), pairs_.size());
    if (is_new) {
      pairs_.push_back({{}, tensor.detach(), tensor.detach().clone(), tensor.requires_grad()});
    }
    pairs_[at->second].names.push_back(name);
  }
}

void Ema::average(Pair& pair, double kept) {
  at::Tensor same;
  if (!pair.learns) same = pair.average == pair.weight;
  pair.average.mul_(kept).add_(pair.weight, 1 - kept);
  if (!pair.learns) pair.average.copy_(at::where(same, pair.weight, pair.average));
}

void Ema::update() {
  if (swapped_) throw Error(ErrorCode::kInternal, "Ema::update() while the average is swapped in");
  const at::NoGradGuard no_grad;
  ++updates_;
  const double d = decay_ * (1 - std::exp(-static_cast<double>(updates_) / kWarmUp));
  for (auto& pair : pairs_) average(pair, d);
}

void Ema::swap() {
  const at::NoGradGuard no_grad;
  for (auto& pair : pairs_) {
    const at::Tensor weight = pair.weight.clone();
    pair.weight.copy_(pair.average);
    pair.average.copy_(weight);
  }
  swapped_ = !swapped_;
}

TensorMap Ema::state() const {
  TensorMap state = tensors();
  for (auto& [name, tensor] : state) tensor = tensor.clone();
  return state;
}

TensorMap Ema::tensors() const {
  TensorMap tensors;
  for (const auto& pair : pairs_) {
    for (const auto& name : pair.names) {
      tensors.emplace(name, swapped_ ? pair.weight : pair.average);
    }
  }
  tensors.emplace(kUpdates, at::scalar_tensor(updates_, at::kLong));
  return tensors;
}

void Ema::load(const TensorMap& state, const std::string& file) {
  if (swapped_) throw Error(ErrorCode::kInternal, "Ema::load() while the average is swapped in");
  const at::Tensor& updates = require(state, kUpdates, file);
  check_fits(updates, at::scalar_tensor(0, at::kLong), kUpdates, file);
  std::set<std::string> known = {kUpdates};
  for (const auto& pair : pairs_) {
    for (const auto& name : pair.names) {
      check_fits(require(state, name, file), pair.weight, name, file);
      known.insert(name);
    }
  }
  for (const auto& [name, tensor] : state) {
    if (!known.contains(name)) throw_corrupt_tensor(file, name, "is no weight of this network");
  }
  const at::NoGradGuard no_grad;
  for (auto& pair : pairs_) pair.average.copy_(state.at(pair.names.front()));
  updates_ = updates.item<int64_t>();
}

}  // namespace lockstep::inline internal
