#include "lockstep/observe/curves.h"

#include <algorithm>

#include "lockstep/base/file.h"

namespace lockstep {
namespace {

using Points = std::vector<std::pair<double, double>>;

Points points_of(const std::vector<MetricsRecord>& records, const std::string& kind,
                 const std::string& name) {
  Points points;
  for (const MetricsRecord& record : records) {
    if (record.kind != kind) continue;
    if (const auto value = record.value(name)) {
      points.emplace_back(static_cast<double>(record.step), *value);
    }
  }
  return points;
}

/// Of an evaluation, but no score.
bool is_score(const std::string& name) {
  return name != "loss" && name != "seconds" && name != "samples";
}

/// Names of evaluated values in the order of their first appearance.
std::vector<std::string> evaluated_names(const std::vector<MetricsRecord>& records) {
  std::vector<std::string> names;
  for (const MetricsRecord& record : records) {
    if (record.kind != "eval") continue;
    for (const auto& [name, value] : record.values) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

bool within_unit(const Points& points) {
  return std::all_of(points.begin(), points.end(),
                     [](const auto& point) { return !(point.second < 0 || point.second > 1); });
}

Chart loss_chart(const std::vector<MetricsRecord>& records) {
  Chart chart{"Loss", "step", "loss", {}};
  const Points raw = points_of(records, "train", "loss");
  const int window = static_cast<int>(raw.size() / 50);
  if (window > 1) {
    chart.series.push_back({"train", raw, false, true});
    chart.series.push_back({"train, smoothed", moving_average(raw, window), false, false});
  } else if (!raw.empty()) {
    chart.series.push_back({"train", raw, false, false});
  }
  const Points evaluated = points_of(records, "eval", "loss");
  if (!evaluated.empty()) chart.series.push_back({"evaluation", evaluated, true, false});
  return chart;
}

Chart metric_chart(const std::vector<MetricsRecord>& records) {
  Chart chart{"Evaluation", "step", "value", {}};
  for (const std::string& name : evaluated_names(records)) {
    const Points points = points_of(records, "eval", name);
    if (is_score(name) && within_unit(points)) chart.series.push_back({name, points, true, false});
  }
  return chart;
}

Chart lr_chart(const std::vector<MetricsRecord>& records) {
  Chart chart{"Learning rate", "step", "lr", {}};
  const Points points = points_of(records, "train", "lr");
  if (!points.empty()) chart.series.push_back({"lr", points, false, false});
  return chart;
}

}  // namespace

std::vector<Chart> run_charts(const std::vector<MetricsRecord>& records) {
  std::vector<Chart> charts;
  for (const Chart& chart : {loss_chart(records), metric_chart(records), lr_chart(records)}) {
    if (!chart.series.empty()) charts.push_back(chart);
  }
  return charts;
}

bool write_curves(const std::filesystem::path& metrics_jsonl, const std::filesystem::path& svg,
                  const std::string& title) {
  const std::vector<Chart> charts = run_charts(read_metrics(metrics_jsonl));
  if (charts.empty()) return false;
  write_file_atomically(svg, render_charts(title, charts));
  return true;
}

}  // namespace lockstep
