// Reads the section metric: keys of all metrics, and of a classifier's.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/train/config/node.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/task_settings.h"

namespace lockstep::inline internal {
namespace {

void add(std::vector<std::string>& names, const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
}

/// The figures of a built-in metric, but for those of single classes. The first is the default of
/// main_indicator.
std::vector<std::string> figures_of(const std::string& metric, const MetricConfig& config) {
  if (metric == "ClsMetric") return {"acc", "top_5"};
  if (metric == "DetMetric") return {"f-score", "recall", "precision"};
  if (metric == "RecMetric") return {"acc", "norm_edit_distance"};
  if (metric == "AucMetric") return {"auc"};
  if (metric == "MapMetric") return {"map"};
  std::vector<std::string> names;
  if (metric == "TopKMetric") {
    for (const int64_t k : config.top_ks(0)) names.push_back(fmt::format("top_{}", k));
  } else {
    for (const auto average : config.averages) {
      if (average == Average::kClass) continue;
      const char* suffix = average == Average::kMicro ? "_micro" : "";
      for (const char* figure : {"f1", "precision", "recall"}) {
        names.push_back(std::string(figure) + suffix);
      }
    }
  }
  return names;
}

void read_main_indicator(ConfigSection& section, MetricConfig& config) {
  std::vector<std::string> figures;
  bool all_known = std::find(config.averages.begin(), config.averages.end(), Average::kClass) ==
                   config.averages.end();
  for (const auto& name : config.names) {
    const bool own = std::any_of(config.own.begin(), config.own.end(),
                                 [&](const OwnMetric& one) { return one.name == name; });
    if (!own) add(figures, figures_of(name, config));
    all_known = all_known && !own;
    if (figures.empty()) {  // of the first metric
      section.require("main_indicator", "is missing: the figure by which checkpoints are ranked");
    }
  }
  config.main_indicator = figures.empty() ? "" : figures.front();
  if (!all_known) return section.read("main_indicator", config.main_indicator, "");
  section.choose("main_indicator", config.main_indicator, figures,
                 "by which checkpoints are ranked; by default the first figure");
}

}  // namespace

std::vector<int64_t> MetricConfig::top_ks(int64_t classes) const {
  if (!top_k.empty()) return top_k;
  std::vector<int64_t> fitting;
  for (const int64_t k : kDefaultTopK) {
    if (k == 1 || classes == 0 || k < classes) fitting.push_back(k);
  }
  return fitting;
}

void read_top_k(ConfigSection& section, MetricConfig& config) {
  section.record("k", "a list of whole numbers from 1 up",
                 fmt::format("[{}]", fmt::join(MetricConfig::kDefaultTopK, ", ")),
                 "*ours*: of top_1, top_5, ...: a sample counts if its class is among the k best");
  section.read("k", config.top_k, {1, 1 << 24}, "");
  if (section.has("k") && config.top_k.empty()) section.fail("k", "must not be an empty list");
}

void read_averages(ConfigSection& section, MetricConfig& config) {
  const std::vector<std::string> known = {"macro", "micro", "class"};  // by Average
  const std::string kind = fmt::format("some of {}", fmt::join(known, ", "));
  section.record("average", kind, known[static_cast<size_t>(config.averages.front())],
                 "*ours*: of f1, precision and recall: the mean over classes; of all classes' "
                 "counts (f1_micro); of each class (f1_0, f1_1, ...)");
  std::vector<std::string> given;
  section.read("average", given, "");
  if (given.empty()) return;
  config.averages.clear();
  for (const auto& name : given) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      section.fail("average",
                   fmt::format("must be {}, not '{}'{}", kind, name, did_you_mean(name, known)));
    }
    config.averages.push_back(static_cast<Average>(found - known.begin()));
  }
}

void read_built_in_metrics(ConfigSection& section, const TaskSettings& task, MetricConfig& config) {
  for (const auto& metric : task.metrics) {
    if (metric.read != nullptr && contains(config.names, metric.name)) metric.read(section, config);
  }
}

std::vector<std::string> read_metric_names(ConfigSection& section,
                                           const std::vector<std::string>& known,
                                           const std::string& about) {
  const Node* node = section.any("name");
  std::string first = known.front();
  if (node == nullptr || node->kind != Node::Kind::kList) {
    section.choose("name", first, known, about);
    return {first};
  }
  std::vector<std::string> names;
  section.read("name", names, "");
  for (const auto& name : names) {
    if (!contains(known, name)) {
      section.fail("name", fmt::format("must be one or some of {}, not '{}'{}",
                                       fmt::join(known, ", "), name, did_you_mean(name, known)));
    }
    if (std::count(names.begin(), names.end(), name) > 1) {
      section.fail("name", fmt::format("has '{}' twice", name));
    }
  }
  if (names.empty()) section.fail("name", "must be one or some of a list, not an empty one");
  return names;
}

void read_own_metrics(ConfigSection& section, MetricConfig& config) {
  for (const auto& name : config.names) {
    if (auto own = read_own_part(section, "name", name, metrics())) config.own.push_back(*own);
  }
  read_main_indicator(section, config);
}

MetricConfig read_class_metric(ConfigSection& section, const TaskSettings& task) {
  MetricConfig config;
  config.names = read_metric_names(
      section, joined_names(names_of(task.metrics), metrics()),
      "*ours*, but for ClsMetric: one, or a list; see [evaluation](../guide/evaluation.md)");
  read_built_in_metrics(section, task, config);
  read_own_metrics(section, config);
  section.any("label_list");
  return config;
}

}  // namespace lockstep::inline internal
