#include "lockstep/parallel/foreach_step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <memory>
#include <vector>

#include "lockstep/torch/optimizer_state_key.h"

namespace lockstep::inline internal {
namespace {

using Tensors = std::vector<at::Tensor>;
using torch::optim::OptimizerParamGroup;

/// Parameters of a group that have gradients, and these.
struct Trained {
  Tensors parameters;
  Tensors gradients;
};

Trained trained_of(const OptimizerParamGroup& group) {
  Trained trained;
  for (const auto& parameter : group.params()) {
    if (!parameter.grad().defined()) continue;
    trained.parameters.push_back(parameter);
    trained.gradients.push_back(parameter.grad());
  }
  return trained;
}

/// The state of each parameter. `make` makes that of a parameter that has none yet.
template <class State, class Make>
std::vector<State*> states_of(OptimizerStates& states, const OptimizerParamGroup& group,
                              const Make& make) {
  std::vector<State*> found;
  for (const auto& parameter : group.params()) {
    if (!parameter.grad().defined()) continue;
    auto& state = states[optimizer_state_key(parameter)];
    if (state == nullptr) state = make(parameter);
    found.push_back(static_cast<State*>(state.get()));
  }
  return found;
}

/// The momentum after this step. A buffer begins as its first gradient.
Tensors moved_buffers(OptimizerStates& states, const OptimizerParamGroup& group,
                      const torch::optim::SGDOptions& options, const Tensors& gradients) {
  using State = torch::optim::SGDParamState;
  const auto slots =
      states_of<State>(states, group, [](const at::Tensor&) { return std::make_unique<State>(); });
  Tensors buffers, moved, by;
  for (size_t i = 0; i < slots.size(); ++i) {
    at::Tensor& buffer = slots[i]->momentum_buffer();
    if (buffer.defined()) {
      moved.push_back(buffer);
      by.push_back(gradients[i]);
    } else {
      buffer = gradients[i].clone();
    }
    buffers.push_back(buffer);
  }
  if (!moved.empty()) {
    at::_foreach_mul_(moved, options.momentum());
    at::_foreach_add_(moved, by, 1 - options.dampening());
  }
  return buffers;
}

/// How one group of Adam or AdamW is updated.
struct AdamRule {
  double lr, beta1, beta2, eps;
  double coupled_decay;    ///< Added to the gradient: Adam's.
  double decoupled_decay;  ///< Shrinks the weights: AdamW's.
};

template <class State>
std::unique_ptr<State> make_adam_state(const at::Tensor& parameter) {
  auto state = std::make_unique<State>();
  state->step(0);
  state->exp_avg(at::zeros_like(parameter, at::MemoryFormat::Preserve));
  state->exp_avg_sq(at::zeros_like(parameter, at::MemoryFormat::Preserve));
  return state;
}

template <class State>
void adam_step(OptimizerStates& states, const OptimizerParamGroup& group, const AdamRule& rule) {
  auto [parameters, gradients] = trained_of(group);
  if (parameters.empty()) return;
  Tensors averages, squares;
  std::vector<at::Scalar> corrections, rates;
  for (State* const state : states_of<State>(states, group, make_adam_state<State>)) {
    state->step(state->step() + 1);
    const auto step = static_cast<double>(state->step());
    corrections.emplace_back(std::sqrt(1 - std::pow(rule.beta2, step)));
    rates.emplace_back(-(rule.lr / (1 - std::pow(rule.beta1, step))));
    averages.push_back(state->exp_avg());
    squares.push_back(state->exp_avg_sq());
  }
  if (rule.coupled_decay != 0)
    gradients = at::_foreach_add(gradients, parameters, rule.coupled_decay);
  if (rule.decoupled_decay != 0) at::_foreach_mul_(parameters, 1 - rule.lr * rule.decoupled_decay);
  at::_foreach_mul_(averages, rule.beta1);
  at::_foreach_add_(averages, gradients, 1 - rule.beta1);
  at::_foreach_mul_(squares, rule.beta2);
  at::_foreach_addcmul_(squares, gradients, gradients, 1 - rule.beta2);
  const Tensors roots = at::_foreach_sqrt(squares);
  at::_foreach_div_(roots, corrections);
  at::_foreach_add_(roots, rule.eps);
  at::_foreach_addcdiv_(parameters, averages, roots, rates);
}

/// `Options`: of Adam or AdamW.
template <class Options>
AdamRule rule_of(const Options& options, bool decoupled) {
  const double decay = options.weight_decay();
  return {options.lr(),  std::get<0>(options.betas()), std::get<1>(options.betas()),
          options.eps(), decoupled ? 0 : decay,        decoupled ? decay : 0};
}

}  // namespace

void foreach_step(torch::optim::SGD& optimizer) {
  const at::NoGradGuard no_grad;
  for (const auto& group : optimizer.param_groups()) {
    const auto& options = static_cast<const torch::optim::SGDOptions&>(group.options());
    auto [parameters, changes] = trained_of(group);
    if (parameters.empty()) continue;
    if (options.weight_decay() != 0)
      changes = at::_foreach_add(changes, parameters, options.weight_decay());
    if (options.momentum() != 0) {
      Tensors buffers = moved_buffers(optimizer.state(), group, options, changes);
      changes = options.nesterov() ? at::_foreach_add(changes, buffers, options.momentum())
                                   : std::move(buffers);
    }
    at::_foreach_add_(parameters, changes, -options.lr());
  }
}

void foreach_step(torch::optim::Adam& optimizer) {
  const at::NoGradGuard no_grad;
  for (const auto& group : optimizer.param_groups()) {
    const auto& options = static_cast<const torch::optim::AdamOptions&>(group.options());
    adam_step<torch::optim::AdamParamState>(optimizer.state(), group, rule_of(options, false));
  }
}

void foreach_step(torch::optim::AdamW& optimizer) {
  const at::NoGradGuard no_grad;
  for (const auto& group : optimizer.param_groups()) {
    const auto& options = static_cast<const torch::optim::AdamWOptions&>(group.options());
    adam_step<torch::optim::AdamWParamState>(optimizer.state(), group, rule_of(options, true));
  }
}

}  // namespace lockstep::inline internal
