#include "lockstep/train/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::inline internal {
namespace {

/// From `start` at part 0 to `end` at part 1 along half a cosine.
double cosine(double start, double end, double part) {
  return end + (start - end) / 2 * (std::cos(std::numbers::pi * part) + 1);
}

double one_cycle(const SchedulerConfig& config, double position, int64_t total) {
  const double initial = config.lr / config.div_factor;
  const double last = initial / config.final_div_factor;
  const double top = config.pct_start * static_cast<double>(total) - 1;  // step of the peak
  const double end = static_cast<double>(total) - 1;
  if (top > 0 && position <= top) return cosine(initial, config.lr, position / top);
  return end <= top ? last : cosine(config.lr, last, (position - top) / (end - top));
}

/// A cycle of a schedule, and the part of it that is over.
struct Cycle {
  int64_t number = 0;
  double part = 0;
};

/// Cycle n takes decay_epochs * cycle_factor^n; `number` is num_cycles behind the last.
Cycle cycle_at(const SchedulerConfig& config, double e) {
  if (config.cycle_factor == 1) {
    const auto number = static_cast<int64_t>(e / config.decay_epochs);
    return {number, e / config.decay_epochs - static_cast<double>(number)};
  }
  Cycle cycle;
  double length = config.decay_epochs;
  while (cycle.number < config.num_cycles && e >= length) {
    e -= length;
    length *= config.cycle_factor;
    ++cycle.number;
  }
  cycle.part = e / length;
  return cycle;
}

double cosine_decay(const SchedulerConfig& config, double e) {
  const Cycle cycle = cycle_at(config, e);
  if (cycle.number >= config.num_cycles) return config.min_lr;
  const double peak = config.lr * std::pow(config.cycle_decay, static_cast<double>(cycle.number));
  return cosine(peak, config.min_lr, cycle.part);
}

double on_plateau(const SchedulerConfig& config, int64_t reductions) {
  const double lr = config.lr * std::pow(config.decay_rate, static_cast<double>(reductions));
  return std::max(lr, std::min(config.min_lr, config.lr));
}

/// Epochs of all cycles.
double decay_length(const SchedulerConfig& config) {
  const auto cycles = static_cast<double>(config.num_cycles);
  const double factor = config.cycle_factor;
  if (factor == 1) return config.decay_epochs * cycles;
  return config.decay_epochs * (std::pow(factor, cycles) - 1) / (factor - 1);
}

double multi_step(const SchedulerConfig& config, double e) {
  const auto passed = std::count_if(config.milestones.begin(), config.milestones.end(),
                                    [&](int64_t at) { return static_cast<double>(at) <= e; });
  return config.lr * std::pow(config.decay_rate, static_cast<double>(passed));
}

/// The rate after warm-up; `e` counts from its end.
double decayed(const SchedulerConfig& config, double e, int64_t reductions) {
  const auto& name = config.scheduler;
  if (name == "cosine_decay" || name == "warmup_cosine_decay") return cosine_decay(config, e);
  if (name == "exponential_decay") return config.lr * std::pow(config.decay_rate, e);
  if (name == "multi_step_decay") return multi_step(config, std::floor(e));
  if (name == "step_decay") {
    return config.lr * std::pow(config.decay_rate, std::floor(std::floor(e) / config.decay_epochs));
  }
  if (name == "polynomial_decay") {
    const double length = static_cast<double>(config.num_epochs) - config.warmup_epochs;
    return config.lr * std::pow(std::max(0.0, 1 - e / length), config.decay_rate);
  }
  if (name == "reduce_on_plateau") return on_plateau(config, reductions);
  return config.lr;
}

}  // namespace

double learning_rate(const SchedulerConfig& config, double step, int64_t steps_per_epoch,
                     int64_t reductions) {
  const int64_t total = config.num_epochs * steps_per_epoch;
  step = std::clamp(step, 0.0, static_cast<double>(std::max<int64_t>(0, total - 1)));
  if (config.scheduler == "one_cycle" && !config.own) return one_cycle(config, step, total);
  double e = step / static_cast<double>(steps_per_epoch);
  if (config.lr_epoch_stair) e = std::floor(e);
  if (e < config.warmup_epochs) {
    const double factor = config.warmup_factor;
    return config.lr * (factor + (1 - factor) * e / config.warmup_epochs);
  }
  if (config.own) {
    return config.own->make({step / static_cast<double>(steps_per_epoch), step, steps_per_epoch,
                             config.num_epochs, config.lr, config.warmup_epochs});
  }
  return decayed(config, e - config.warmup_epochs, reductions);
}

std::string schedule_note(const SchedulerConfig& config) {
  const auto& name = config.scheduler;
  const auto epochs = static_cast<double>(config.num_epochs);
  const bool warms_up = (name != "one_cycle" || config.own) && config.warmup_factor < 1;
  if (warms_up && config.warmup_epochs >= epochs) {
    return fmt::format(
        "scheduler: warm-up takes {} epochs, num_epochs is {}: the learning rate never reaches lr; "
        "reduce warmup_epochs",
        config.warmup_epochs, config.num_epochs);
  }
  if (name != "cosine_decay" && name != "warmup_cosine_decay") return "";
  const double decay = decay_length(config);
  if (config.warmup_epochs + decay <= epochs) return "";
  return fmt::format(
      "scheduler: warm-up and decay take {} epochs, num_epochs is {}: the learning rate does not "
      "come down to min_lr; reduce decay_epochs",
      config.warmup_epochs + decay, config.num_epochs);
}

}  // namespace lockstep::inline internal
