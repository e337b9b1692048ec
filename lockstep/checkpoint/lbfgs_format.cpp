#include "lockstep/checkpoint/lbfgs_format.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/optim/lbfgs.h>

#include <deque>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

using State = torch::optim::LBFGSParamState;
using torch::optim::OptimizerParamState;

/// Text order is numeric order, so that a list keeps its order in a map.
std::string entry(const char* list, size_t index) {
  return fmt::format("{}.{:06}", list, index);
}

void put(TensorMap& tensors, const std::string& name, const at::Tensor& tensor) {
  if (tensor.defined()) tensors.emplace(name, tensor);
}

void put_list(TensorMap& tensors, const char* name, const std::deque<at::Tensor>& list) {
  for (size_t i = 0; i < list.size(); ++i) put(tensors, entry(name, i), list[i]);
}

at::Tensor find(const TensorMap& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? at::Tensor() : found->second;
}

std::deque<at::Tensor> find_list(const TensorMap& tensors, const char* name) {
  std::deque<at::Tensor> list;
  for (;;) {
    at::Tensor next = find(tensors, entry(name, list.size()));
    if (!next.defined()) return list;
    list.push_back(std::move(next));
  }
}

template <class T>
T number(const TensorMap& tensors, const char* name, at::ScalarType type) {
  const at::Tensor tensor = find(tensors, name);
  if (!tensor.defined() || tensor.scalar_type() != type || tensor.dim() != 0) {
    throw Error(ErrorCode::kCorrupt, fmt::format("'{}' is missing or not one number", name));
  }
  return tensor.item<T>();
}

TensorMap save(const OptimizerParamState& base) {
  const auto& state = static_cast<const State&>(base);
  TensorMap tensors;
  tensors.emplace("func_evals", at::scalar_tensor(state.func_evals(), at::kLong));
  tensors.emplace("n_iter", at::scalar_tensor(state.n_iter(), at::kLong));
  tensors.emplace("t", at::scalar_tensor(state.t(), at::kDouble));
  tensors.emplace("prev_loss", at::scalar_tensor(state.prev_loss(), at::kDouble));
  put(tensors, "d", state.d());
  put(tensors, "H_diag", state.H_diag());
  put(tensors, "prev_flat_grad", state.prev_flat_grad());
  put_list(tensors, "old_dirs", state.old_dirs());
  put_list(tensors, "old_stps", state.old_stps());
  put_list(tensors, "ro", state.ro());
  return tensors;
}

std::unique_ptr<OptimizerParamState> load(const TensorMap& tensors) {
  auto state = std::make_unique<State>();
  state->func_evals(number<int64_t>(tensors, "func_evals", at::kLong));
  state->n_iter(number<int64_t>(tensors, "n_iter", at::kLong));
  state->t(number<double>(tensors, "t", at::kDouble));
  state->prev_loss(number<double>(tensors, "prev_loss", at::kDouble));
  state->d(find(tensors, "d"));
  state->H_diag(find(tensors, "H_diag"));
  state->prev_flat_grad(find(tensors, "prev_flat_grad"));
  state->old_dirs(find_list(tensors, "old_dirs"));
  state->old_stps(find_list(tensors, "old_stps"));
  state->ro(find_list(tensors, "ro"));
  const size_t steps = state->old_dirs().size();
  if (state->old_stps().size() != steps || state->ro().size() != steps) {
    throw Error(ErrorCode::kCorrupt, "old_dirs, old_stps and ro are not equally many");
  }
  return state;
}

}  // namespace

OptimizerFormat lbfgs_format() {
  const auto fits = [](const torch::optim::Optimizer& optimizer) {
    return dynamic_cast<const torch::optim::LBFGS*>(&optimizer) != nullptr;
  };
  return {"LBFGS", fits, save, load};
}

}  // namespace lockstep::inline internal
