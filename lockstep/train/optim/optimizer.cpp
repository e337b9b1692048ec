#include "lockstep/train/optim/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <torch/optim/adagrad.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/amp/gradients.h"
#include "lockstep/error.h"
#include "lockstep/foreach_optimizers.h"
#include "lockstep/train/config/optimizers.h"
#include "lockstep/train/optim/parameter_groups.h"
#include "lockstep/train/optim/rule_optimizer.h"

namespace lockstep::inline internal {
namespace {

using Groups = std::vector<torch::optim::OptimizerParamGroup>;

void set_decay(RuleOptions& options, double decay) {
  options.weight_decay = decay;
}

template <class Options>
void set_decay(Options& options, double decay) {
  options.weight_decay(decay);
}

template <class Options>
Groups with_options(const std::vector<ParameterGroup>& groups, const Options& options) {
  Groups made;
  for (const auto& group : groups) {
    auto own = std::make_unique<Options>(options);
    set_decay(*own, group.weight_decay);
    own->set_lr(group.lr);
    made.emplace_back(group.parameters, std::move(own));
  }
  return made;
}

template <class Options>
Options adam_options(const OptimizerConfig& config) {
  Options options(0);
  options.betas(std::make_tuple(config.beta1, config.beta2))
      .eps(config.eps)
      .amsgrad(config.use_amsgrad);
  return options;
}

RuleOptions rule_options(const OptimizerConfig& config) {
  RuleOptions options;
  options.beta1 = config.beta1;
  options.beta2 = config.beta2;
  options.beta3 = config.beta3;
  options.eps = config.eps;
  options.momentum = config.momentum;
  options.decay = config.decay;
  options.centered = config.centered;
  options.schedule_decay = config.schedule_decay;
  return options;
}

/// A registered optimizer, with a group for each of `groups`.
std::unique_ptr<torch::optim::Optimizer> make_own(const OwnPart<OptimizerOfGroups>& own,
                                                  const std::vector<ParameterGroup>& groups) {
  auto optimizer = own.make(groups);
  const size_t made = optimizer ? optimizer->param_groups().size() : 0;
  if (optimizer && made == groups.size()) {
    // Not the default rate of its class, which the schedule would scale.
    for (size_t i = 0; i < made; ++i) optimizer->param_groups()[i].options().set_lr(groups[i].lr);
    return optimizer;
  }
  throw Error(ErrorCode::kInvalidArgument,
              optimizer ? fmt::format("optimizer.opt: '{}' made {} groups of the {} given",
                                      own.name, made, groups.size())
                        : fmt::format("optimizer.opt: '{}' made no optimizer", own.name));
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_built_in_optimizer(
    const OptimizerConfig& config, const std::vector<ParameterGroup>& groups) {
  using namespace torch::optim;
  switch (optimizer_kind(config).rule) {
    case OptimizerRule::kAdam: {
      const auto options = adam_options<AdamOptions>(config);
      return std::make_unique<ForeachAdam>(with_options(groups, options), options);
    }
    case OptimizerRule::kAdamW: {
      const auto options = adam_options<AdamWOptions>(config);
      return std::make_unique<ForeachAdamW>(with_options(groups, options), options);
    }
    case OptimizerRule::kAdagrad: {
      AdagradOptions options(0);
      options.initial_accumulator_value(config.accum).eps(config.eps);
      return std::make_unique<Adagrad>(with_options(groups, options), options);
    }
    case OptimizerRule::kOurs: {
      const RuleOptions options = rule_options(config);
      return std::make_unique<RuleOptimizer>(config.opt, with_options(groups, options), options);
    }
    case OptimizerRule::kSgd:
      break;
  }
  SGDOptions options(0);
  options.momentum(config.momentum).nesterov(config.nesterov).dampening(config.dampening);
  return std::make_unique<ForeachSGD>(with_options(groups, options), options);
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerConfig& config,
                                                        const torch::nn::Module& model,
                                                        double peak) {
  const auto groups = parameter_groups(config, model, peak);
  return config.own ? make_own(*config.own, groups) : make_built_in_optimizer(config, groups);
}

GroupRates::GroupRates(torch::optim::Optimizer& optimizer, double peak)
    : optimizer_(optimizer), peak_(peak) {
  for (const auto& group : optimizer.param_groups()) initial_.push_back(group.options().get_lr());
  const bool own = std::any_of(initial_.begin(), initial_.end(), [](double lr) { return lr > 0; });
  if (own && !(peak > 0)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("scheduler.lr is {}, but the optimizer's groups have rates of their "
                            "own, which the schedule scales: it must be greater than 0",
                            peak));
  }
}

void GroupRates::set(double lr) {
  for (size_t i = 0; i < initial_.size(); ++i) {
    const double own = initial_[i] > 0 ? initial_[i] * (lr / peak_) : lr;
    optimizer_.param_groups()[i].options().set_lr(own);
  }
}

int state_copies(const OptimizerConfig& config) {
  if (config.own) return 2;  // a guess: Adam's
  const OptimizerKind& kind = optimizer_kind(config);
  if (kind.rule == OptimizerRule::kSgd) return config.momentum > 0 ? 1 : 0;
  const bool more =
      (kind.has("use_amsgrad") && config.use_amsgrad) || (kind.has("centered") && config.centered);
  return kind.slots + (more ? 1 : 0);
}

double clip_gradients(std::span<const at::Tensor> parameters, double max_norm) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return 0;
  double sum = 0;
  // One copy from the device for all norms.
  const at::Tensor norms = at::stack(norms_of(gradients)).to(at::kCPU, at::kDouble);
  for (const double norm : std::span(norms.data_ptr<double>(), gradients.size()))
    sum += norm * norm;
  const double norm = std::sqrt(sum);
  const double scale = max_norm / (norm + 1e-6);
  if (scale < 1) multiply(gradients, scale);
  return norm;
}

}  // namespace lockstep::inline internal
