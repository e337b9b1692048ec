#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/text.h"
#include "lockstep/train/config/built_in_makers.h"
#include "lockstep/train/config/optimizers.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/sections.h"

namespace lockstep::inline internal {
namespace {

/// Those of a kind that differ from OptimizerConfig's.
void set_defaults(OptimizerConfig& config, const OptimizerKind& kind) {
  config.opt = kind.name;
  config.beta1 = kind.beta1;
  config.beta2 = kind.beta2;
  config.eps = kind.eps;
}

/// A built-in one in upper case or lower; null: a registered one, with its settings.
const OptimizerKind* read_opt(ConfigSection& section, OptimizerConfig& config) {
  std::string given = config.opt;
  section.read("opt", given, "");
  const auto known = joined_names(names_of(optimizer_kinds()), optimizers());
  section.record("opt", fmt::format("{}", fmt::join(known, ", ")), config.opt,
                 "momentum and nesterov mean the same: SGD, as sgd");
  // Of built-in ones the case does not count: neither may a registered one be "Adam".
  if (find_optimizer(ascii_lower(given)) != nullptr) {
    refuse_taken(section, "opt", given, own_names(optimizers()), {given});
  }
  config.own = read_own_part(section, "opt", given, optimizers());
  if (config.own) {
    config.opt = given;
    return nullptr;
  }
  const OptimizerKind* kind = find_optimizer(ascii_lower(given));
  if (kind == nullptr) section.choose("opt", config.opt, known, "");  // throws
  set_defaults(config, *kind);
  return kind;
}

/// Arguments of one optimizer alone.
void read_own_arguments(ConfigSection& section, OptimizerConfig& config,
                        const OptimizerKind& kind) {
  if (kind.has("dampening")) {
    section.read("dampening", config.dampening, {0, 1}, "of the momentum");
  }
  if (kind.has("beta3")) section.read("beta3", config.beta3, {0, 1}, "see `beta1`");
  if (kind.has("schedule_decay")) {
    section.read("schedule_decay", config.schedule_decay, {0, 1e3}, "of the momentum's schedule");
  } else {
    ignore(section, "schedule_decay");  // as MindOCR, which accepts it for all
  }
  if (kind.has("use_amsgrad")) {
    section.read("use_amsgrad", config.use_amsgrad, "the largest second moment so far counts");
  }
  if (kind.has("accum")) section.read("accum", config.accum, {0, 1e12}, "initial value of the sum");
  if (kind.has("update_slots")) {
    section.only("update_slots", {"True", ""}, "the sum grows with every step");
  }
  if (kind.has("decay")) section.read("decay", config.decay, {0, 1}, "of the mean square");
  if (kind.has("centered")) section.read("centered", config.centered, "about the mean");
}

void read_decay(ConfigSection& section, OptimizerConfig& config, bool exact_decay) {
  section.read("weight_decay", config.weight_decay, {0, 1e6}, "see below");
  config.exact_decay = exact_decay;
  section.choose("weight_decay_groups", config.exact_decay, {{"exact", true}, {"mindspore", false}},
                 "*ours*: whether the next three keys apply as documented");
  const std::vector<std::string> strategies = {"svtr", "filter_norm_and_bias"};
  section.record("grouping_strategy", fmt::format("{}", fmt::join(strategies, ", ")),
                 config.grouping_strategy, "exceptions from decay; precedes the next two");
  if (section.has("grouping_strategy")) {
    read_name(section, "grouping_strategy", config.grouping_strategy, strategies, {"visionlan"},
              "");
  }
  section.any("grouping_strategy");
  section.read("no_weight_decay_params", config.no_weight_decay_params,
               "parts of names that do not decay, ours or MindSpore's (`gamma`, `beta`)");
  section.read("filter_bias_and_bn", config.filter_bias_and_bn,
               "biases, and parameters of norms, do not decay");
}

/// `lr` is kept as a part of the schedule's, which it follows.
void read_group_rate(ConfigSection& section, GroupConfig& group, double peak) {
  section.read("lr_scale", group.lr_scale, {1e-9, 1e9},
               "*ours*: their rate is `scheduler.lr` times this");
  std::optional<double> lr;
  section.read("lr", lr, {1e-12, 1e6},
               "*ours*: the same as a rate: where the schedule has `scheduler.lr`");
  if (!lr) return;
  if (group.lr_scale) section.fail("lr", "and lr_scale exclude each other");
  if (!(peak > 0))
    section.fail("lr", "follows the schedule, so scheduler.lr must be greater than 0");
  group.lr_scale = *lr / peak;
}

GroupConfig read_group(ConfigSection section, double peak) {
  GroupConfig group;
  group.where = section.where("params");
  section.require("params", "is missing: patterns of parameters' names, such as layer1.*");
  section.read("params", group.params,
               "*ours*: patterns of parameters' names, or of modules: `layer1`, `*.bias`");
  if (group.params.empty() && section.settings() == nullptr) {
    section.fail("params", "must have at least one pattern of parameters' names");
  }
  read_group_rate(section, group, peak);
  section.read("weight_decay", group.weight_decay, {0, 1e6},
               "*ours*: in the place of the optimizer's; the exceptions from decay remain");
  section.read("frozen", group.frozen, "*ours*: True: they keep their values");
  section.read("keep_statistics", group.keep_statistics,
               "*ours*: True, with `frozen`: their batch norms normalise by their running "
               "statistics, and keep them");
  section.finish();
  if (group.frozen && (group.lr_scale || group.weight_decay)) {
    section.fail("frozen", "excludes lr_scale, lr and weight_decay");
  }
  if (group.keep_statistics && !group.frozen) section.fail("keep_statistics", "needs frozen: True");
  return group;
}

void read_groups(ConfigSection& section, OptimizerConfig& config, double peak) {
  section.record("groups", "a list of mappings", "",
                 "*ours*: parameters with values of their own; [keys](#groups)");
  section.any("groups");
  if (section.settings() != nullptr) {
    Node none;
    read_group(ConfigSection(none, section.name_of("groups"), section.settings()), peak);
  }
  section.read("layer_decay", config.layer_decay, {1e-6, 1},
               "*ours*: factor of the rate from one layer to the one before it; 1: one rate for "
               "all");
  if (!section.has("groups")) return;
  Node* const list = section.any("groups");
  if (list->kind != Node::Kind::kList) {
    section.fail("groups", "must be a list of mappings such as {params: fc, lr_scale: 10}");
  }
  for (size_t i = 0; i < list->items.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", section.name_of("groups"), i);
    config.groups.push_back(read_group(ConfigSection(list->items[i], name), peak));
  }
}

/// Whether the kind ignores a key that all of them may have.
bool ignores(const OptimizerKind& kind, std::string_view key) {
  const std::string_view name = kind.name;
  const bool sgd = kind.rule == OptimizerRule::kSgd;
  if (key == "momentum") return !sgd && name != "rmsprop";
  if (key == "nesterov") return !sgd;
  if (key == "beta1" || key == "beta2") {
    return sgd || name == "rmsprop" || kind.rule == OptimizerRule::kAdagrad;
  }
  return key == "eps" && (sgd || name == "lion");
}

/// The keys of the built-in optimizers. `all`: also those that this kind ignores.
void read_built_in(ConfigSection& section, OptimizerConfig& config, const OptimizerKind& kind,
                   bool all) {
  const auto has = [&](const char* key) { return all || !ignores(kind, key); };
  if (has("momentum")) {
    section.read("momentum", config.momentum, {0, 1}, "of sgd, momentum, nesterov and rmsprop");
  }
  if (has("nesterov")) {
    section.read("nesterov", config.nesterov, "of sgd, momentum and nesterov");
  }
  if (has("beta1")) section.read("beta1", config.beta1, {0, 0.999999999}, "of moments");
  if (has("beta2")) section.read("beta2", config.beta2, {0, 0.999999999}, "of moments");
  if (has("eps")) {
    section.read("eps", config.eps, {0, 1},
                 "in the denominator; adam adds it where PyTorch does, not MindSpore");
  }
  read_own_arguments(section, config, kind);
}

void check_nesterov(const ConfigSection& section, const OptimizerConfig& config,
                    const OptimizerKind& kind) {
  if (!config.nesterov) return;
  if (kind.rule == OptimizerRule::kAdam) {
    section.fail("nesterov", "cannot be True with adam: use nadam");
  }
  if (kind.rule == OptimizerRule::kSgd && (config.momentum == 0 || config.dampening > 0)) {
    section.fail("nesterov", "needs a momentum above 0, and no dampening");
  }
}

/// For a part that builds on it: weight decay and rates come with the groups.
OptimizerOfGroups read_as_part(ConfigSection& section, const OptimizerKind& kind) {
  OptimizerConfig config;
  set_defaults(config, kind);
  read_built_in(section, config, kind, /*all=*/false);
  check_nesterov(section, config, kind);
  return built_in_makers().optimizer(config);
}

}  // namespace

OptimizerConfig read_optimizer(ConfigSection section, bool exact_decay, double peak) {
  OptimizerConfig config;
  const OptimizerKind* kind = read_opt(section, config);
  read_decay(section, config, exact_decay);
  if (kind != nullptr) read_built_in(section, config, *kind, /*all=*/true);
  read_groups(section, config, peak);
  section.only("clip", {}, "clip gradients with train.clip_grad and train.clip_norm");
  section.only("loss_scale", {"1.0", "1", ""}, "losses are scaled by the section loss_scaler");
  section.only("checkpoint_path", {""}, "model.resume loads the optimizer's state too");
  section.only("lr", {""}, "the learning rate is scheduler.lr");
  ignore(section, "use_locking");
  section.finish();
  if (kind != nullptr) check_nesterov(section, config, *kind);
  return config;
}

OptimizerConfig read_groups_alone(ConfigSection section, double peak) {
  OptimizerConfig config;
  read_groups(section, config, peak);
  section.finish();
  return config;
}

template <>
std::vector<NamedPart<OptimizerOfGroups>> built_in_parts() {
  std::vector<NamedPart<OptimizerOfGroups>> parts;
  for (const auto& kind : optimizer_kinds()) {
    parts.push_back(built_in_part<OptimizerOfGroups>(
        kind, [&kind](ConfigSection& section) { return read_as_part(section, kind); }));
  }
  return parts;
}

std::vector<ListedPart> built_in_optimizers() {
  std::vector<ListedPart> parts;
  for (const auto& kind : optimizer_kinds()) {
    ListedPart part{kind.name, kind.about, {}};
    Node node;
    node.kind = Node::Kind::kMap;
    node.entries.push_back({"opt", {}, Node::scalar(kind.name)});
    read_optimizer(ConfigSection(node, "optimizer", &part.settings), true, 1);
    std::erase_if(part.settings, [&](const Setting& setting) {
      return setting.section != "optimizer" || setting.key == "opt" || ignores(kind, setting.key);
    });
    parts.push_back(std::move(part));
  }
  parts.push_back(take_common(parts));
  return parts;
}

LossScalerConfig read_loss_scaler(ConfigSection section) {
  LossScalerConfig config;
  section.require("type", "is missing: static or dynamic");
  section.require("loss_scale", "is missing: a number, 1.0 for none");
  section.choose("type", config.dynamic, {{"static", false}, {"dynamic", true}},
                 "whether the scale follows overflows; without the section a static scale of 1");
  section.read("loss_scale", config.loss_scale, {1e-37, 1e38}, "static, or the first one");
  section.read("scale_factor", config.scale_factor, {1.000001, 1e6},
               "by which an overflow divides, but not below 1");
  section.read("scale_window", config.scale_window, {1, kMaxCount},
               "steps without overflow after which it multiplies");
  section.finish();
  return config;
}

LossScaleOptions LossScalerConfig::options() const {
  return {.dynamic = dynamic,
          .init_scale = loss_scale,
          .growth_factor = scale_factor,
          .backoff_factor = 1 / scale_factor,
          .growth_interval = scale_window};
}

}  // namespace lockstep::inline internal
