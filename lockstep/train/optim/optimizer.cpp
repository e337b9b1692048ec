#include "lockstep/train/optim/optimizer.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

using Groups = std::vector<torch::optim::OptimizerParamGroup>;

template <class Options>
Groups make_groups(const OptimizerConfig& config, const torch::nn::Module& model,
                   const Options& options) {
  std::vector<at::Tensor> with, without;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    (decays(config, item.key(), item.value().dim()) ? with : without).push_back(item.value());
  }
  if (with.empty() && without.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the model has no parameter to train");
  }
  Groups groups;
  for (const bool decay : {true, false}) {
    auto& params = decay ? with : without;
    if (params.empty()) continue;
    auto own = std::make_unique<Options>(options);
    own->weight_decay(decay ? config.weight_decay : 0);
    groups.emplace_back(params, std::move(own));
  }
  return groups;
}

template <class Options>
Options adam_options(const OptimizerConfig& config) {
  Options options(0);
  options.betas(std::make_tuple(config.beta1, config.beta2)).eps(config.eps);
  return options;
}

}  // namespace

bool decays(const OptimizerConfig& config, const std::string& name, int64_t dims) {
  const auto& parts = config.no_weight_decay_params;
  const bool named = std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return name.find(part) != std::string::npos;
  });
  return !named && !(config.filter_bias_and_bn && dims <= 1);
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerConfig& config,
                                                        const torch::nn::Module& model) {
  using namespace torch::optim;
  if (config.opt == "adam") {
    const auto options = adam_options<AdamOptions>(config);
    return std::make_unique<Adam>(make_groups(config, model, options), options);
  }
  if (config.opt == "adamw") {
    const auto options = adam_options<AdamWOptions>(config);
    return std::make_unique<AdamW>(make_groups(config, model, options), options);
  }
  SGDOptions options(0);
  options.momentum(config.momentum).nesterov(config.nesterov);
  return std::make_unique<SGD>(make_groups(config, model, options), options);
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double lr) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(lr);
}

int state_copies(const OptimizerConfig& config) {
  if (config.opt == "adam" || config.opt == "adamw") return 2;
  return config.momentum > 0 ? 1 : 0;
}

}  // namespace lockstep
