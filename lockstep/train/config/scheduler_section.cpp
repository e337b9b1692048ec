#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "lockstep/train/config/built_in_makers.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/sections.h"

namespace lockstep::inline internal {
namespace {

constexpr double kMaxEpochs = 1e9;

struct ScheduleKind {
  const char* name;
  const char* about;
  std::vector<std::string> keys;  ///< Beside those of warm-up; a file may have the others too.
};

const std::vector<ScheduleKind>& schedule_kinds() {
  static const std::vector<ScheduleKind> kinds = {
      {"constant", "lr in every step", {}},
      {"cosine_decay",
       "half a cosine from lr to min_lr; with num_cycles it restarts",
       {"min_lr", "decay_epochs", "num_cycles", "cycle_decay", "cycle_factor"}},
      {"warmup_cosine_decay",
       "the same as cosine_decay",
       {"min_lr", "decay_epochs", "num_cycles", "cycle_decay", "cycle_factor"}},
      {"exponential_decay", "lr * decay_rate^epoch", {"decay_rate"}},
      {"polynomial_decay", "lr * (1 - part of the run)^decay_rate", {"decay_rate"}},
      {"step_decay", "times decay_rate every decay_epochs", {"decay_rate", "decay_epochs"}},
      {"multi_step_decay", "times decay_rate at milestones", {"decay_rate", "milestones"}},
      {"one_cycle",
       "up from lr / div_factor to lr, then down, by the step; PyTorch's OneCycleLR",
       {"pct_start", "div_factor", "final_div_factor"}},
      {"reduce_on_plateau",
       "times decay_rate when a metric of evaluation no longer improves",
       {"decay_rate", "min_lr", "metric", "patience", "min_delta"}}};
  return kinds;
}

/// Keys of every schedule, also of a registered one.
const std::vector<std::string>& common_keys() {
  static const std::vector<std::string> keys = {"num_epochs", "lr_epoch_stair", "warmup_epochs",
                                                "warmup_factor"};
  return keys;
}

void read_cycles(ConfigSection& section, SchedulerConfig& config) {
  section.read("num_cycles", config.num_cycles, {1, 1 << 20}, "of the schedule");
  section.read("cycle_decay", config.cycle_decay, {0, 1}, "factor from one cycle to the next");
  section.read("cycle_factor", config.cycle_factor, {1, 1e6},
               "*ours*: factor of the length from one cycle to the next");
}

void read_one_cycle(ConfigSection& section, SchedulerConfig& config) {
  section.read("pct_start", config.pct_start, {0.001, 0.999},
               "*ours*, one_cycle: part of the run in which the rate rises");
  section.read("div_factor", config.div_factor, {1, 1e12},
               "*ours*, one_cycle: starts at `lr` / `div_factor`");
  section.read("final_div_factor", config.final_div_factor, {1, 1e12},
               "*ours*, one_cycle: ends at that start / `final_div_factor`");
}

void read_warm_up(ConfigSection& section, SchedulerConfig& config,
                  const std::function<bool(const char* key)>& has) {
  if (has("warmup_epochs")) {
    section.read("warmup_epochs", config.warmup_epochs, {0, kMaxEpochs},
                 "in which the rate rises to `lr`");
  }
  if (has("warmup_factor")) {
    section.read("warmup_factor", config.warmup_factor, {0, 1}, "it starts at `lr` times this");
  }
}

/// All keys but `scheduler` and `lr`, if `has` is true of them. Keys that belong together have the
/// first one's answer.
void read_keys(ConfigSection& section, SchedulerConfig& config,
               const std::function<bool(const char* key)>& has) {
  if (has("min_lr")) section.read("min_lr", config.min_lr, {0, 1e6}, "the lowest");
  read_warm_up(section, config, has);
  if (has("decay_epochs")) {
    section.read("decay_epochs", config.decay_epochs, {1e-9, kMaxEpochs},
                 "in which it falls; of step_decay from one fall to the next");
  }
  if (has("decay_rate")) {
    section.read("decay_rate", config.decay_rate, {0, 1e6},
                 "factor of a fall; the power of polynomial_decay");
  }
  if (has("milestones")) {
    section.read("milestones", config.milestones, {0, kMaxCount},
                 "epochs of multi_step_decay, from the end of warm-up");
  }
  if (has("num_epochs"))
    section.read("num_epochs", config.num_epochs, {1, kMaxCount}, "of the run");
  if (has("num_cycles")) read_cycles(section, config);
  if (has("lr_epoch_stair")) {
    section.read("lr_epoch_stair", config.lr_epoch_stair, "the rate changes after epochs alone");
  }
  if (has("pct_start")) read_one_cycle(section, config);
  if (has("patience")) read_patience(section, config.plateau, "*ours*, reduce_on_plateau: ");
}

void check_shape(const ConfigSection& section, const SchedulerConfig& config) {
  if (config.scheduler == "multi_step_decay" && config.milestones.empty()) {
    section.refuse_misspelt("milestones");
    section.fail("milestones", "must name at least one epoch for multi_step_decay, e.g. [30, 60]");
  }
  if (config.scheduler == "reduce_on_plateau" && config.decay_rate >= 1) {
    section.fail("decay_rate", "must be below 1 for reduce_on_plateau, e.g. 0.1");
  }
}

/// For a part that builds on it: the point has the highest rate, warm-up and the length of the run.
Schedule read_as_part(ConfigSection& section, const ScheduleKind& kind) {
  SchedulerConfig config;
  config.scheduler = kind.name;
  if (config.scheduler == "reduce_on_plateau") {
    refuse_as_part(section, kind.name,
                   "it follows evaluations, and a schedule the point of the run alone");
  }
  auto keys = kind.keys;
  keys.insert(keys.end(), {"lr_epoch_stair", "warmup_factor"});
  read_keys(section, config, [&](const char* key) { return contains(keys, key); });
  if (section.settings() == nullptr) check_shape(section, config);
  return built_in_makers().schedule(config);
}

}  // namespace

void read_patience(ConfigSection& section, PatienceConfig& config, const std::string& of) {
  section.read("metric", config.metric,
               of + "a metric of evaluation, or `loss`, of which less is better; null: "
                    "`metric.main_indicator`");
  section.read("patience", config.patience, {1, kMaxCount},
               of + "evaluations in a row without improvement");
  section.read("min_delta", config.min_delta, {0, 1e12}, of + "a gain up to this is none");
}

SchedulerConfig read_scheduler(ConfigSection section) {
  SchedulerConfig config;
  config.own =
      read_part(section, "scheduler", config.scheduler, names_of(schedule_kinds()), schedules(),
                "cosine_decay is warmup_cosine_decay; one_cycle and reduce_on_plateau are *ours*");
  section.read("lr", config.lr, {0, 1e6}, "the highest");
  // A built-in schedule accepts the keys of all schedules: files of MindOCR have keys of others,
  // too.
  read_keys(section, config,
            [&](const char* key) { return !config.own || contains(common_keys(), key); });
  section.finish();
  if (!config.own) check_shape(section, config);
  return config;
}

template <>
std::vector<NamedPart<Schedule>> built_in_parts() {
  std::vector<NamedPart<Schedule>> parts;
  for (const auto& kind : schedule_kinds()) {
    parts.push_back(built_in_part<Schedule>(
        kind, [&kind](ConfigSection& section) { return read_as_part(section, kind); }));
  }
  return parts;
}

std::vector<ListedPart> built_in_schedules() {
  Settings all;
  Node node;
  read_scheduler(ConfigSection(node, "scheduler", &all));
  std::vector<ListedPart> parts;
  for (const auto& kind : schedule_kinds()) {
    ListedPart part{kind.name, kind.about, {}};
    std::vector<std::string> keys = {"lr", "num_epochs", "lr_epoch_stair"};
    if (part.name != "one_cycle") keys.insert(keys.end(), {"warmup_epochs", "warmup_factor"});
    keys.insert(keys.end(), kind.keys.begin(), kind.keys.end());
    std::copy_if(all.begin(), all.end(), std::back_inserter(part.settings), [&](const auto& one) {
      return std::find(keys.begin(), keys.end(), one.key) != keys.end();
    });
    parts.push_back(std::move(part));
  }
  parts.push_back(take_common(parts));
  return parts;
}

}  // namespace lockstep::inline internal
