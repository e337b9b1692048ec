#include "lockstep/train/config/sections.h"

namespace lockstep {
namespace {

constexpr double kMaxEpochs = 1e9;

const std::vector<std::string> kSchedulers = {
    "constant",         "cosine_decay", "warmup_cosine_decay", "exponential_decay",
    "polynomial_decay", "step_decay",   "multi_step_decay",    "one_cycle"};

const std::vector<std::string> kOptimizers = {"sgd", "momentum", "nesterov", "adam", "adamw"};
const std::vector<std::string> kOthersOfMindocr = {"lion",    "nadam",   "adan",
                                                   "rmsprop", "adagrad", "lamb"};

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string read_opt(Section& section) {
  std::string name = lower(section.text("opt", "adam"));
  for (const auto& other : kOthersOfMindocr) {
    if (name == other)
      section.fail("opt", "'" + name + "' is not built in: sgd, adam and adamw are");
  }
  for (const auto& known : kOptimizers) {
    if (name == known) return name;
  }
  return section.choice("opt", "adam", kOptimizers);
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
    section.fail("milestones", "must name at least one epoch for multi_step_decay, e.g. [30, 60]");
  }
  return config;
}

OptimizerConfig read_optimizer(Section section) {
  OptimizerConfig config;
  config.opt = read_opt(section);
  config.weight_decay = section.number("weight_decay", 0, 0, 1e6);
  config.momentum = section.number("momentum", 0.9, 0, 1);
  config.nesterov = section.flag("nesterov", false);
  config.filter_bias_and_bn = section.flag("filter_bias_and_bn", true);
  config.no_weight_decay_params = section.texts("no_weight_decay_params");
  config.beta1 = section.number("beta1", 0.9, 0, 0.999999999);
  config.beta2 = section.number("beta2", 0.999, 0, 0.999999999);
  config.eps = section.number("eps", 1e-8, 0, 1);
  section.only("grouping_strategy", {""}, "use no_weight_decay_params or filter_bias_and_bn");
  section.only("clip", {}, "clip gradients with train.clip_grad and train.clip_norm");
  section.finish();
  if (config.nesterov && config.momentum == 0) {
    section.fail("nesterov", "needs a momentum above 0");
  }
  return config;
}

LossScalerConfig read_loss_scaler(Section section) {
  LossScalerConfig config;
  if (!section.has("type")) section.fail("type", "is missing: static or dynamic");
  if (!section.has("loss_scale")) section.fail("loss_scale", "is missing: a number, 1.0 for none");
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
