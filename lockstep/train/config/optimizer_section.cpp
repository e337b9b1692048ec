#include <array>

#include "lockstep/train/config/sections.h"

namespace lockstep {
namespace {

constexpr double kMaxEpochs = 1e9;

const std::vector<std::string> kSchedulers = {
    "constant",         "cosine_decay", "warmup_cosine_decay", "exponential_decay",
    "polynomial_decay", "step_decay",   "multi_step_decay",    "one_cycle"};

/// Where MindOCR's and libtorch's defaults are not those of OptimizerConfig.
struct OptimizerDefaults {
  const char* name;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};
constexpr std::array<OptimizerDefaults, 11> kOptimizers = {{
    {"sgd"},
    {"momentum"},
    {"nesterov"},
    {"adam"},
    {"adamw"},
    {"lion", 0.9, 0.99},
    {"nadam"},
    {"adan", 0.98, 0.92},
    {"rmsprop", 0.9, 0.999, 1e-10},
    {"adagrad", 0.9, 0.999, 0},
    {"lamb", 0.9, 0.999, 1e-6},
}};

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

const OptimizerDefaults& read_opt(Section& section) {
  const std::string name = lower(section.text("opt", "adam"));
  std::vector<std::string> names;
  for (const auto& known : kOptimizers) {
    if (name == known.name) return known;
    names.emplace_back(known.name);
  }
  section.choice("opt", "adam", names);
  return kOptimizers[0];  // not reached: choice() throws
}

/// Arguments that one optimizer has and others do not.
void read_own_arguments(Section& section, OptimizerConfig& config) {
  const auto& opt = config.opt;
  if (opt == "sgd") config.dampening = section.number("dampening", 0, 0, 1);
  if (opt == "adan") config.beta3 = section.number("beta3", 0.99, 0, 1);
  if (opt == "nadam") {
    config.schedule_decay = section.number("schedule_decay", 4e-3, 0, 1e3);
  } else {
    ignore(section, "schedule_decay");  // as MindOCR, which takes it for all
  }
  if (opt == "adam" || opt == "adamw") config.use_amsgrad = section.flag("use_amsgrad", false);
  if (opt == "adagrad") {
    config.accum = section.number("accum", 0.1, 0, 1e12);
    section.only("update_slots", {"True", ""}, "the sum grows with every step");
  }
  if (opt == "rmsprop") {
    config.decay = section.number("decay", 0.9, 0, 1);
    config.centered = section.flag("centered", false);
  }
}

void read_decay(Section& section, OptimizerConfig& config, ModelType type) {
  config.weight_decay = section.number("weight_decay", 0, 0, 1e6);
  const std::string fallback = type == ModelType::kCls ? "exact" : "mindspore";
  config.exact_decay =
      section.choice("weight_decay_groups", fallback, {"exact", "mindspore"}) == "exact";
  config.grouping_strategy = section.has("grouping_strategy")
                                 ? read_name(section, "grouping_strategy", "",
                                             {"svtr", "filter_norm_and_bias"}, {"visionlan"})
                                 : "";
  section.any("grouping_strategy");
  config.no_weight_decay_params = section.texts("no_weight_decay_params");
  config.filter_bias_and_bn = section.flag("filter_bias_and_bn", true);
}

}  // namespace

SchedulerConfig read_scheduler(Section section) {
  SchedulerConfig config;
  config.scheduler = section.choice("scheduler", "constant", kSchedulers);
  config.lr = section.number("lr", 0.01, 0, 1e6);
  config.min_lr = section.number("min_lr", 1e-6, 0, 1e6);
  config.warmup_epochs = section.number("warmup_epochs", 3, 0, kMaxEpochs);
  config.warmup_factor = section.number("warmup_factor", 0, 0, 1);
  config.decay_epochs = section.number("decay_epochs", 10, 1e-9, kMaxEpochs);
  config.decay_rate = section.number("decay_rate", 0.9, 0, 1e6);
  config.milestones = section.wholes("milestones", 0, int64_t{1} << 40);
  config.num_epochs = section.whole("num_epochs", 200, 1, int64_t{1} << 40);
  config.num_cycles = section.whole("num_cycles", 1, 1, 1 << 20);
  config.cycle_decay = section.number("cycle_decay", 1, 0, 1);
  config.lr_epoch_stair = section.flag("lr_epoch_stair", false);
  config.pct_start = section.number("pct_start", 0.3, 0.001, 0.999);
  config.div_factor = section.number("div_factor", 25, 1, 1e12);
  config.final_div_factor = section.number("final_div_factor", 1e4, 1, 1e12);
  section.finish();
  if (config.scheduler == "multi_step_decay" && config.milestones.empty()) {
    section.refuse_misspelt("milestones");
    section.fail("milestones", "must name at least one epoch for multi_step_decay, e.g. [30, 60]");
  }
  return config;
}

OptimizerConfig read_optimizer(Section section, ModelType type) {
  OptimizerConfig config;
  const auto& defaults = read_opt(section);
  config.opt = defaults.name;
  read_decay(section, config, type);
  config.momentum = section.number("momentum", 0.9, 0, 1);
  config.nesterov = section.flag("nesterov", false);
  config.beta1 = section.number("beta1", defaults.beta1, 0, 0.999999999);
  config.beta2 = section.number("beta2", defaults.beta2, 0, 0.999999999);
  config.eps = section.number("eps", defaults.eps, 0, 1);
  read_own_arguments(section, config);
  section.only("clip", {}, "clip gradients with train.clip_grad and train.clip_norm");
  section.only("loss_scale", {"1.0", "1", ""}, "losses are scaled by the section loss_scaler");
  section.only("checkpoint_path", {""}, "model.resume loads the optimizer's state too");
  section.only("lr", {""}, "the learning rate is scheduler.lr");
  ignore(section, "use_locking");
  section.finish();
  const bool sgd = config.opt == "sgd" || config.opt == "momentum" || config.opt == "nesterov";
  if (config.nesterov && config.opt == "adam") {
    section.fail("nesterov", "cannot be True with adam: use nadam");
  }
  if (sgd && config.nesterov && (config.momentum == 0 || config.dampening > 0)) {
    section.fail("nesterov", "needs a momentum above 0, and no dampening");
  }
  return config;
}

LossScalerConfig read_loss_scaler(Section section) {
  LossScalerConfig config;
  if (!section.has("type")) section.missing("type", "is missing: static or dynamic");
  if (!section.has("loss_scale"))
    section.missing("loss_scale", "is missing: a number, 1.0 for none");
  config.dynamic = section.choice("type", "", {"static", "dynamic"}) == "dynamic";
  config.loss_scale = section.number("loss_scale", 1, 1e-37, 1e38);
  config.scale_factor = section.number("scale_factor", 2, 1.000001, 1e6);
  config.scale_window = section.whole("scale_window", 2000, 1, kMaxCount);
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

}  // namespace lockstep
