#include "lockstep/train/optim/rule_optimizer.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <array>
#include <cmath>

#include "lockstep/error.h"
#include "lockstep/torch/optimizer_state_key.h"

namespace lockstep::inline internal {

struct RuleOptimizer::Update {
  const at::Tensor& p;
  const at::Tensor& grad;
  const RuleOptions& options;
  NamedParamState& state;
  const at::Tensor& slot(size_t index) const { return state.tensors[index]; }
  /// The gradient with the term of weight decay.
  at::Tensor decayed_gradient() const {
    return options.weight_decay == 0 ? grad : grad.add(p, options.weight_decay);
  }
  double correction(double beta) const {
    return 1 - std::pow(beta, static_cast<double>(state.step));
  }
};

struct RuleOptimizer::Entry {
  const char* name;
  const char* kind;
  std::vector<std::string> slots;
  Rule rule;
};

void RuleOptimizer::lion(const Update& update) {
  const auto& options = update.options;
  const auto& m = update.slot(0);
  const auto direction = m.mul(options.beta1).add_(update.grad, 1 - options.beta1).sign_();
  update.p.mul_(1 - options.lr * options.weight_decay).add_(direction, -options.lr);
  m.mul_(options.beta2).add_(update.grad, 1 - options.beta2);
}

namespace {

void update_moments(const at::Tensor& m, const at::Tensor& v, const at::Tensor& grad,
                    const RuleOptions& options) {
  m.mul_(options.beta1).add_(grad, 1 - options.beta1);
  v.mul_(options.beta2).addcmul_(grad, grad, 1 - options.beta2);
}

double nadam_mu(const RuleOptions& options, int64_t step) {
  const double exponent = static_cast<double>(step) * options.schedule_decay;
  return options.beta1 * (1 - 0.5 * std::pow(0.96, exponent));
}

/// mu(1) * .. * mu(step). It is below beta1^step; the loop ends once 1 minus it rounds to 1.
double nadam_product(const RuleOptions& options, int64_t step) {
  double product = 1;
  for (int64_t i = 1; i <= step && product > 1e-17; ++i) product *= nadam_mu(options, i);
  return product;
}

}  // namespace

void RuleOptimizer::nadam(const Update& update) {
  const auto& options = update.options;
  const int64_t t = update.state.step;
  const at::Tensor grad = update.decayed_gradient();
  const auto &m = update.slot(0), &v = update.slot(1);
  update_moments(m, v, grad, options);
  const double mu = nadam_mu(options, t), next = nadam_mu(options, t + 1);
  const double product = nadam_product(options, t);
  const auto root = v.div(update.correction(options.beta2)).sqrt_().add_(options.eps);
  update.p.addcdiv_(grad, root, -options.lr * (1 - mu) / (1 - product));
  update.p.addcdiv_(m, root, -options.lr * next / (1 - product * next));
}

void RuleOptimizer::adan(const Update& update) {
  const auto& options = update.options;
  const auto &m = update.slot(0), &v = update.slot(1), &n = update.slot(2);
  const auto& previous = update.slot(3);
  if (update.state.step == 1) previous.copy_(update.grad);
  const at::Tensor change = update.grad.sub(previous);
  m.lerp_(update.grad, options.beta1);
  v.lerp_(change, options.beta2);
  n.lerp_(update.grad.add(change, 1 - options.beta2).square_(), options.beta3);
  const at::Tensor rate = n.sqrt().add_(options.eps).reciprocal_().mul_(options.lr);
  update.p.sub_(m.add(v, 1 - options.beta2).mul_(rate));
  update.p.div_(rate.mul_(options.weight_decay).add_(1));
  previous.copy_(update.grad);
}

void RuleOptimizer::rmsprop(const Update& update) {
  const auto& options = update.options;
  const at::Tensor grad = update.decayed_gradient();
  const auto &square = update.slot(0), &momentum = update.slot(1);
  if (update.state.step == 1) square.fill_(1);
  square.mul_(options.decay).addcmul_(grad, grad, 1 - options.decay);
  at::Tensor root = square.add(options.eps);
  if (options.centered) {
    const auto& mean = update.slot(2);
    mean.lerp_(grad, 1 - options.decay);
    root.addcmul_(mean, mean, -1);
  }
  momentum.mul_(options.momentum).addcdiv_(grad, root.sqrt_(), options.lr);
  update.p.sub_(momentum);
}

void RuleOptimizer::lamb(const Update& update) {
  const auto& options = update.options;
  const auto &m = update.slot(0), &v = update.slot(1);
  update_moments(m, v, update.grad, options);
  const auto root = v.div(update.correction(options.beta2)).sqrt_().add_(options.eps);
  const auto direction =
      m.div(root).div_(update.correction(options.beta1)).add_(update.p, options.weight_decay);
  const double own = update.p.norm().item().toDouble();
  const double of_direction = direction.norm().item().toDouble();
  const double ratio = own > 0 && of_direction > 0 ? own / of_direction : 1;
  update.p.add_(direction, -options.lr * ratio);
}

const RuleOptimizer::Entry& RuleOptimizer::entry_of(const std::string& rule) {
  static const std::array<Entry, 5> kEntries = {{
      {"lion", "Lion", {"momentum"}, lion},
      {"nadam", "NAdam", {"exp_avg", "exp_avg_sq"}, nadam},
      {"adan", "Adan", {"exp_avg", "exp_avg_diff", "exp_avg_sq", "previous"}, adan},
      {"rmsprop", "RMSProp", {"square", "momentum", "mean"}, rmsprop},
      {"lamb", "Lamb", {"exp_avg", "exp_avg_sq"}, lamb},
  }};
  for (const auto& entry : kEntries) {
    if (rule == entry.name) return entry;
  }
  throw Error(ErrorCode::kInvalidArgument, "there is no optimizer '" + rule + "'");
}

RuleOptimizer::RuleOptimizer(const std::string& rule,
                             const std::vector<torch::optim::OptimizerParamGroup>& groups,
                             const RuleOptions& options)
    : NamedStateOptimizer(groups, std::make_unique<RuleOptions>(options)),
      rule_(entry_of(rule).rule),
      kind_(entry_of(rule).kind),
      slots_(entry_of(rule).slots) {
  if (rule == "rmsprop" && !options.centered) slots_.pop_back();
}

NamedParamState& RuleOptimizer::state_of(const at::Tensor& parameter) {
  auto& state = state_[optimizer_state_key(parameter)];
  if (state == nullptr) {
    auto fresh = std::make_unique<NamedParamState>();
    for (size_t i = 0; i < slots_.size(); ++i) fresh->tensors.push_back(at::zeros_like(parameter));
    state = std::move(fresh);
  }
  return static_cast<NamedParamState&>(*state);
}

at::Tensor RuleOptimizer::step(LossClosure closure) {
  if (closure) throw Error(ErrorCode::kInvalidArgument, kind_ + " takes no closure");
  const at::NoGradGuard no_grad;
  for (auto& group : param_groups_) {
    const auto& options = static_cast<const RuleOptions&>(group.options());
    for (const at::Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      auto& state = state_of(parameter);
      ++state.step;
      rule_({parameter, parameter.grad(), options, state});
    }
  }
  return {};
}

}  // namespace lockstep::inline internal
