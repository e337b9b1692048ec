#include "lockstep/checkpoint/optimizer_state.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <array>
#include <functional>
#include <memory>
#include <unordered_map>

#include "lockstep/checkpoint/lbfgs_format.h"
#include "lockstep/checkpoint/named_state.h"
#include "lockstep/checkpoint/tensor_types.h"
#include "lockstep/error.h"
#include "lockstep/torch/optimizer_state_key.h"

namespace lockstep::inline internal {
namespace {

using torch::optim::Optimizer;
using torch::optim::OptimizerParamState;
using StatePtr = std::unique_ptr<OptimizerParamState>;

struct Slot {
  const char* name;
  bool required;  ///< True if every parameter with state has it.
  at::Tensor* tensor;
};

/// The state that one kind of optimizer has of a parameter.
struct StateView {
  std::vector<Slot> slots;
  int64_t* step = nullptr;
};

StateView view_sgd(OptimizerParamState& base) {
  auto& state = static_cast<torch::optim::SGDParamState&>(base);
  return {{{"momentum_buffer", true, &state.momentum_buffer()}}, nullptr};
}

template <class State>
StateView view_adam(OptimizerParamState& base) {
  auto& state = static_cast<State&>(base);
  return {{{"exp_avg", true, &state.exp_avg()},
           {"exp_avg_sq", true, &state.exp_avg_sq()},
           {"max_exp_avg_sq", false, &state.max_exp_avg_sq()}},
          &state.step()};
}

template <class T>
bool is_a(const Optimizer& optimizer) {
  return dynamic_cast<const T*>(&optimizer) != nullptr;
}

StateView view_adagrad(OptimizerParamState& base) {
  auto& state = static_cast<torch::optim::AdagradParamState&>(base);
  return {{{"sum", true, &state.sum()}}, &state.step()};
}

StateView view_rmsprop(OptimizerParamState& base) {
  auto& state = static_cast<torch::optim::RMSpropParamState&>(base);
  return {{{"square_avg", true, &state.square_avg()},
           {"momentum_buffer", false, &state.momentum_buffer()},
           {"grad_avg", false, &state.grad_avg()}},
          &state.step()};
}

template <class T>
StatePtr make_state() {
  return std::make_unique<T>();
}

struct Kind {
  std::string name;
  bool (*is)(const Optimizer&);
  std::function<StatePtr()> make;
  std::function<StateView(OptimizerParamState&)> view;
  const OptimizerFormat* format = nullptr;  ///< Replaces make and view.
};

const std::array<Kind, 5> kKinds = {{
    {"SGD", is_a<torch::optim::SGD>, make_state<torch::optim::SGDParamState>, view_sgd},
    {"Adam", is_a<torch::optim::Adam>, make_state<torch::optim::AdamParamState>,
     view_adam<torch::optim::AdamParamState>},
    {"AdamW", is_a<torch::optim::AdamW>, make_state<torch::optim::AdamWParamState>,
     view_adam<torch::optim::AdamWParamState>},
    {"Adagrad", is_a<torch::optim::Adagrad>, make_state<torch::optim::AdagradParamState>,
     view_adagrad},
    {"RMSprop", is_a<torch::optim::RMSprop>, make_state<torch::optim::RMSpropParamState>,
     view_rmsprop},
}};

/// For one of Lockstep's own optimizers, which must outlive the result.
Kind kind_of_named(const NamedStateOptimizer& optimizer) {
  const auto& slots = optimizer.slots();
  const auto make = [&slots] {
    auto state = std::make_unique<NamedParamState>();
    state->tensors.resize(slots.size());
    return state;
  };
  const auto view = [&slots](OptimizerParamState& base) {
    auto& state = static_cast<NamedParamState&>(base);
    StateView result{{}, &state.step};
    for (size_t i = 0; i < slots.size(); ++i) {
      result.slots.push_back({slots[i].c_str(), true, &state.tensors[i]});
    }
    return result;
  };
  return {optimizer.kind(), nullptr, make, view, nullptr};
}

Kind kind_of(const Optimizer& optimizer) {
  if (const auto* named = dynamic_cast<const NamedStateOptimizer*>(&optimizer)) {
    return kind_of_named(*named);
  }
  static const auto& lbfgs = *new OptimizerFormat(lbfgs_format());
  if (lbfgs.fits(optimizer)) return {lbfgs.kind, nullptr, nullptr, nullptr, &lbfgs};
  for (const Kind& kind : kKinds) {
    if (kind.is(optimizer)) return kind;
  }
  throw Error(ErrorCode::kInvalidArgument,
              "the state of this optimizer cannot be saved: checkpoints hold that of SGD, Adam, "
              "AdamW, Adagrad, RMSprop and LBFGS, and of Lockstep's own optimizers");
}

struct NamedParameter {
  std::string name;
  at::Tensor tensor;
};

/// The optimizer's parameters under the module's names.
std::vector<NamedParameter> name_parameters(const torch::nn::Module& module,
                                            const Optimizer& optimizer) {
  std::unordered_map<const c10::TensorImpl*, std::string> names;
  for (const auto& item : module.named_parameters()) {
    names.emplace(item.value().unsafeGetTensorImpl(), item.key());
  }
  std::vector<NamedParameter> named;
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      const auto name = names.find(parameter.unsafeGetTensorImpl());
      if (name == names.end()) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the optimizer's parameter {} (shape {}) is not of this network",
                                named.size(), parameter.sizes()));
      }
      named.push_back({name->second, parameter});
    }
  }
  return named;
}

/// Takes tensors out by name, so that tensors left over at the end are unknown.
class Source {
 public:
  Source(TensorMap tensors, TensorMap own, const std::string& file)
      : tensors_(std::move(tensors)), own_(std::move(own)), file_(file) {}

  std::optional<at::Tensor> take(const std::string& name) {
    auto node = tensors_.extract(name);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }
  /// All tensors whose names begin with `prefix`, without the prefix.
  TensorMap take_all(const std::string& prefix) {
    TensorMap taken;
    for (auto at = tensors_.lower_bound(prefix);
         at != tensors_.end() && at->first.compare(0, prefix.size(), prefix) == 0;) {
      taken.emplace(at->first.substr(prefix.size()), at->second);
      at = tensors_.erase(at);
    }
    return taken;
  }
  int64_t take_step(const std::string& name) {
    const auto tensor = take(name);
    if (!tensor) throw_corrupt_tensor(file_, name, "is missing");
    if (tensor->scalar_type() != at::kLong || tensor->dim() != 0) {
      throw_corrupt_tensor(file_, name, "is not one whole number (I64, shape [])");
    }
    return tensor->item<int64_t>();
  }
  at::Tensor fit(at::Tensor tensor, const std::string& name, const at::Tensor& parameter) {
    if (tensor.sizes() != parameter.sizes()) {
      throw_corrupt_tensor(
          file_, name,
          fmt::format("has shape {}, its parameter {}", tensor.sizes(), parameter.sizes()));
    }
    if (tensor.scalar_type() != parameter.scalar_type()) {
      throw_corrupt_tensor(
          file_, name,
          fmt::format("is {}, its parameter {}", at::toString(tensor.scalar_type()),
                      at::toString(parameter.scalar_type())));
    }
    const auto own = own_.find(name);
    if (own != own_.end() && own->second.is_same(tensor)) return tensor;
    // One that nobody else has, as from a file, need not be copied.
    const bool shared = tensor.use_count() > 1 || tensor.storage().use_count() > 1;
    return tensor.to(parameter.device(), /*non_blocking=*/false, /*copy=*/shared);
  }
  const std::string& file() const { return file_; }
  void check_empty() const {
    if (!tensors_.empty())
      throw_corrupt_tensor(file_, tensors_.begin()->first, "is of no parameter");
  }

 private:
  TensorMap tensors_;
  TensorMap own_;
  const std::string& file_;
};

StatePtr take_formatted(Source& source, const OptimizerFormat& format,
                        const NamedParameter& parameter) {
  TensorMap own = source.take_all(parameter.name + ".");
  if (own.empty()) return nullptr;
  for (auto& [name, tensor] : own) tensor = tensor.to(parameter.tensor.device(), false, true);
  try {
    return format.load(own);
  } catch (const Error& error) {
    throw_corrupt_tensor(source.file(), parameter.name,
                         fmt::format("has no state of {}: {}", format.kind, error.what()));
  }
}

/// The state of one parameter, or nothing if the file has none of it.
StatePtr take_state(Source& source, const Kind& kind, const NamedParameter& parameter) {
  if (kind.format) return take_formatted(source, *kind.format, parameter);
  StatePtr state = kind.make();
  const StateView view = kind.view(*state);
  int found = 0;
  std::string missing;
  for (const Slot& slot : view.slots) {
    const std::string name = parameter.name + "." + slot.name;
    if (auto tensor = source.take(name)) {
      *slot.tensor = source.fit(*std::move(tensor), name, parameter.tensor);
      ++found;
    } else if (slot.required) {
      missing = name;
    }
  }
  if (found == 0) return nullptr;
  if (!missing.empty()) throw_corrupt_tensor(source.file(), missing, "is missing");
  if (view.step != nullptr) *view.step = source.take_step(parameter.name + ".step");
  return state;
}

}  // namespace

std::string optimizer_kind(const Optimizer& optimizer) {
  return kind_of(optimizer).name;
}

TensorMap optimizer_tensors(const torch::nn::Module& module, const Optimizer& optimizer) {
  const Kind kind = kind_of(optimizer);
  TensorMap tensors;
  for (const NamedParameter& parameter : name_parameters(module, optimizer)) {
    const auto state = optimizer.state().find(optimizer_state_key(parameter.tensor));
    if (state == optimizer.state().end()) continue;
    if (kind.format) {
      for (const auto& [name, tensor] : kind.format->save(*state->second)) {
        tensors.emplace(parameter.name + "." + name, tensor);
      }
      continue;
    }
    const StateView view = kind.view(*state->second);
    for (const Slot& slot : view.slots) {
      if (slot.tensor->defined()) tensors.emplace(parameter.name + "." + slot.name, *slot.tensor);
    }
    if (view.step != nullptr) {
      tensors.emplace(parameter.name + ".step", at::scalar_tensor(*view.step, at::kLong));
    }
  }
  return tensors;
}

TensorMap optimizer_slots(const torch::nn::Module& module, const Optimizer& optimizer) {
  const Kind kind = kind_of(optimizer);
  TensorMap tensors;
  if (kind.format != nullptr) return tensors;
  for (const NamedParameter& parameter : name_parameters(module, optimizer)) {
    const auto state = optimizer.state().find(optimizer_state_key(parameter.tensor));
    if (state == optimizer.state().end()) continue;
    for (const Slot& slot : kind.view(*state->second).slots) {
      if (slot.tensor->defined()) tensors.emplace(parameter.name + "." + slot.name, *slot.tensor);
    }
  }
  return tensors;
}

void load_optimizer(const torch::nn::Module& module, Optimizer& optimizer, TensorMap tensors,
                    const std::string& file) {
  const Kind kind = kind_of(optimizer);
  Source source(std::move(tensors), optimizer_slots(module, optimizer), file);
  OptimizerStates states;
  for (const NamedParameter& parameter : name_parameters(module, optimizer)) {
    if (StatePtr state = take_state(source, kind, parameter)) {
      states[optimizer_state_key(parameter.tensor)] = std::move(state);
    }
  }
  source.check_empty();
  optimizer.state() = std::move(states);
}

}  // namespace lockstep::inline internal
