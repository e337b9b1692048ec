#include "lockstep/train/optim/parameter_groups.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "lockstep/error.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/train/config/optimizers.h"
#include "lockstep/train/config/parameter_names.h"

namespace lockstep::inline internal {
namespace {

using Parameters = torch::OrderedDict<std::string, at::Tensor>;

/// Scale or shift of a norm: one dimension, and a weight of one dimension beside it.
bool is_of_norm(const Parameters& all, const std::string& name, int64_t dims) {
  if (dims > 1) return false;
  const std::string layer = name.substr(0, name.rfind('.') + 1);
  const at::Tensor* weight = all.find(layer + "weight");
  return weight != nullptr && weight->dim() <= 1;
}

bool contains_any(const std::string& text, const std::vector<std::string>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return text.find(part) != std::string::npos; });
}

/// The parameter's name in MindSpore: ".gamma" and ".beta" in a norm.
std::string mindspore_name(const ParameterFacts& parameter) {
  if (!parameter.of_norm) return parameter.name;
  const size_t dot = parameter.name.rfind('.') + 1;
  return parameter.name.substr(0, dot) + (parameter.name.substr(dot) == "bias" ? "beta" : "gamma");
}

bool is_named(const ParameterFacts& parameter, const std::vector<std::string>& parts) {
  return contains_any(parameter.name, parts) || contains_any(mindspore_name(parameter), parts);
}

bool decays_exactly(const OptimizerConfig& config, const ParameterFacts& parameter) {
  const bool small = parameter.dims <= 1;
  if (config.grouping_strategy == "svtr") {
    return !small && !is_named(parameter, {"norm", "pos_embed"});
  }
  if (config.grouping_strategy == "filter_norm_and_bias") return !small;
  return !is_named(parameter, config.no_weight_decay_params) &&
         !(config.filter_bias_and_bn && small);
}

std::vector<std::string> names_of_parameters(const std::vector<NamedTensor>& parameters) {
  std::vector<std::string> names;
  for (const auto& parameter : parameters) names.push_back(parameter.name);
  return names;
}

/// The group of `name`; null: none.
const GroupConfig* find_group(const OptimizerConfig& config, const std::string& name) {
  const int index = group_of(config.groups, name);
  return index < 0 ? nullptr : &config.groups[static_cast<size_t>(index)];
}

/// The factor of each parameter's rate, in the model's order.
std::vector<double> rate_scales(const OptimizerConfig& config,
                                const std::vector<std::string>& names) {
  auto scales = layer_scales(config.layer_decay, names);
  for (size_t i = 0; i < names.size(); ++i) {
    const GroupConfig* group = find_group(config, names[i]);
    if (group != nullptr && group->lr_scale) scales[i] = *group->lr_scale;
  }
  return scales;
}

}  // namespace

bool decays(const OptimizerConfig& config, const ParameterFacts& parameter) {
  if (config.exact_decay) return decays_exactly(config, parameter);
  const bool grouped = !config.grouping_strategy.empty() ||
                       !config.no_weight_decay_params.empty() || config.filter_bias_and_bn;
  const OptimizerKind* kind = find_optimizer(config.opt);
  return grouped || (kind != nullptr && kind->decays_norms) || !parameter.of_norm;
}

std::vector<ParameterGroup> parameter_groups(const OptimizerConfig& config,
                                             const torch::nn::Module& model, double peak) {
  const auto all = model.named_parameters();
  const auto distinct = parameters_of(model);
  const auto scales = rate_scales(config, names_of_parameters(distinct));
  using DecayAndRate = std::pair<double, double>;
  std::map<DecayAndRate, std::vector<at::Tensor>, std::greater<>> sorted;
  for (size_t i = 0; i < distinct.size(); ++i) {
    const auto& [name, parameter] = distinct[i];
    if (!parameter.requires_grad()) continue;
    const GroupConfig* group = find_group(config, name);
    const double decay =
        group != nullptr ? group->weight_decay.value_or(config.weight_decay) : config.weight_decay;
    const bool norm = is_of_norm(all, name, parameter.dim());
    const bool applies = decays(config, {name, parameter.dim(), norm});
    const double lr = scales[i] == 1 ? 0 : scales[i] * peak;
    sorted[{applies ? decay : 0, lr}].push_back(parameter);
  }
  if (sorted.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the model has no parameter to train");
  }
  std::vector<ParameterGroup> groups;
  for (auto& [key, parameters] : sorted) {
    groups.push_back({std::move(parameters), key.second, key.first});
  }
  return groups;
}

void freeze_parameters(const OptimizerConfig& config, torch::nn::Module& model) {
  if (config.groups.empty()) return;
  auto all = model.named_parameters();
  check_groups(config.groups, all.keys());
  for (auto& item : all) {
    const GroupConfig* group = find_group(config, item.key());
    if (group != nullptr && group->frozen) item.value().requires_grad_(false);
  }
}

void drop_repeats(torch::optim::Optimizer& optimizer) {
  std::set<const c10::TensorImpl*> seen;
  for (auto& group : optimizer.param_groups()) {
    std::erase_if(group.params(), [&](const at::Tensor& parameter) {
      return !seen.insert(parameter.unsafeGetTensorImpl()).second;
    });
  }
}

int64_t count_trainable(const torch::nn::Module& model) {
  int64_t count = 0;
  for (const auto& [name, parameter] : parameters_of(model)) {
    if (parameter.requires_grad()) count += parameter.numel();
  }
  return count;
}

std::string groups_line(const OptimizerConfig& config, const torch::nn::Module& model) {
  if (config.groups.empty() && config.layer_decay == 1) return "";
  const auto all = parameters_of(model);
  const auto scales = rate_scales(config, names_of_parameters(all));
  std::vector<double> trained;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].tensor.requires_grad()) trained.push_back(scales[i]);
  }
  if (trained.empty()) return "";
  const auto [least, most] = std::minmax_element(trained.begin(), trained.end());
  const std::string rates = *least == *most ? fmt::format("{:.4g}", *least)
                                            : fmt::format("{:.4g} to {:.4g}", *least, *most);
  return fmt::format(
      "Parameters: {} of {} are trained, {} are frozen; rates of {} times the "
      "schedule's",
      trained.size(), all.size(), all.size() - trained.size(), rates);
}

KeptStatistics::KeptStatistics(const OptimizerConfig& config, const torch::nn::Module& model) {
  const bool any = std::any_of(config.groups.begin(), config.groups.end(),
                               [](const GroupConfig& group) { return group.keep_statistics; });
  if (!any) return;
  std::set<const GroupConfig*> keeping;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    const auto buffers = item.value()->named_buffers(/*recurse=*/false);
    if (!buffers.contains("running_mean")) continue;
    const GroupConfig* group = find_group(config, item.key() + ".running_mean");
    if (group == nullptr || !group->keep_statistics) continue;
    norms_.push_back(item.value());
    keeping.insert(group);
    for (const auto& buffer : buffers) {
      values_.emplace_back(buffer.value(), buffer.value().detach().clone());
    }
  }
  for (const auto& group : config.groups) {
    if (!group.keep_statistics || keeping.contains(&group)) continue;
    throw Error(ErrorCode::kInvalidArgument,
                group.where +
                    ": keep_statistics: its patterns name no batch norm; name the "
                    "modules, as layer1, and not their weights alone");
  }
}

void KeptStatistics::hold() {
  for (const auto& norm : norms_) norm->eval();
}

void KeptStatistics::restore() {
  const at::NoGradGuard no_grad;
  for (auto& [buffer, value] : values_) buffer.copy_(value);
}

}  // namespace lockstep::inline internal
