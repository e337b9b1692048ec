#include "lockstep/observe/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string_view>

#include "lockstep/base/file.h"
#include "lockstep/error.h"
#include "lockstep/observe/log_file.h"

namespace lockstep::inline internal {
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

/// Whether an evaluated value is a score. The rank is the writer's label.
bool is_score(const std::string& name) {
  return name != "loss" && name != "seconds" && name != "samples" && name != "rank";
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

using Smoothing = Points (*)(const Points&, int window);

/// Points of a mean; at most 1: there are too few for one.
int window_of(const Points& raw) {
  return static_cast<int>(raw.size() / 50);
}

/// The values of each step, and of many steps also their mean.
void add_steps(Chart& chart, const Points& raw, Smoothing smoothed) {
  const int window = window_of(raw);
  if (window > 1) {
    chart.series.push_back({"train", raw, false, true});
    chart.series.push_back({"train, smoothed", smoothed(raw, window), false, false});
  } else if (!raw.empty()) {
    chart.series.push_back({"train", raw, false, false});
  }
}

Chart loss_chart(const std::vector<MetricsRecord>& records) {
  Chart chart{"Loss", "step", "loss", {}};
  add_steps(chart, points_of(records, "train", "loss"), moving_average);
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

/// The least n such that no finite value is farther from 0 than the n-th power of ten.
int power_of_ten(const Points& points) {
  double farthest = 0;
  for (const auto& [step, value] : points) {
    if (std::isfinite(value)) farthest = std::max(farthest, std::abs(value));
  }
  return farthest > 0 ? static_cast<int>(std::ceil(std::log10(farthest) - 1e-9)) : 0;
}

/// A chart for each power of ten. So no curve flattens another, and many values of one kind, such
/// as a percentage of each class, need few charts.
std::vector<Chart> charts_by_power(const std::string& title, std::vector<Series> all) {
  std::map<int, Chart> by_power;
  for (Series& series : all) {
    const int power = power_of_ten(series.points);
    const auto name = fmt::format("{}, up to {:g}", title, std::pow(10.0, power));
    Chart& chart = by_power.try_emplace(power, Chart{name, "step", "value"}).first->second;
    chart.series.push_back(std::move(series));
  }
  std::vector<Chart> charts;
  for (auto& [power, chart] : by_power) charts.push_back(std::move(chart));
  return charts;
}

/// Metrics with values below 0 or above 1.
std::vector<Chart> wide_metric_charts(const std::vector<MetricsRecord>& records) {
  std::vector<Series> wide;
  for (const std::string& name : evaluated_names(records)) {
    const Points points = points_of(records, "eval", name);
    if (is_score(name) && !within_unit(points)) wide.push_back({name, points, true, false});
  }
  return charts_by_power("Evaluation", std::move(wide));
}

/// Values of the loss. Of many steps there is only the mean, as several share a chart.
std::vector<Chart> logged_charts(const std::vector<MetricsRecord>& records,
                                 const std::vector<std::string>& names) {
  std::vector<Series> all;
  bool are_means = false;
  for (const std::string& name : names) {
    const Points raw = points_of(records, "train", name);
    const bool any = std::any_of(raw.begin(), raw.end(),
                                 [](const auto& point) { return std::isfinite(point.second); });
    if (!any) continue;
    const int window = window_of(raw);
    are_means = are_means || window > 1;
    all.push_back({name, window > 1 ? moving_average(raw, window) : raw, false, false});
  }
  return charts_by_power(are_means ? "Logged values, smoothed" : "Logged values", std::move(all));
}

/// The images of `window` steps by their time. A mean of the rates would count a slow step as one
/// of many, although it takes the time of many. Steps without a rate are left out.
Points mean_rate(const Points& rates, int window) {
  Points times = rates;
  for (auto& [step, value] : times) {
    value = value > 0 ? 1 / value : std::numeric_limits<double>::quiet_NaN();
  }
  Points means = moving_average(times, window);
  for (auto& [step, value] : means) value = 1 / value;
  return means;
}

Chart speed_chart(const std::vector<MetricsRecord>& records) {
  Chart chart{"Speed", "step", "images/s", {}};
  add_steps(chart, points_of(records, "train", "images_per_s"), mean_rate);
  return chart;
}

Chart lr_chart(const std::vector<MetricsRecord>& records) {
  Chart chart{"Learning rate", "step", "lr", {}};
  const Points points = points_of(records, "train", "lr");
  if (!points.empty()) chart.series.push_back({"lr", points, false, false});
  return chart;
}

/// `{"kind":"train"` of a record's line, as encode_metrics() begins one.
std::string_view kind_of(std::string_view line) {
  constexpr std::string_view kBegin = R"({"kind":")";
  if (!line.starts_with(kBegin)) return "";
  return line.substr(0, line.find('"', kBegin.size()));
}

/// Records of one kind, evenly spaced; skipped lines are not parsed.
class Sample {
 public:
  void take(std::string_view line) {
    if (seen_++ % stride_ != 0) {
      last_ = line;
      return;
    }
    last_.clear();
    add(line);
    if (records_.size() < kMostSampled) return;
    size_t kept = 1;  // every second, from the first on
    for (size_t i = 2; i < records_.size(); i += 2) records_[kept++] = std::move(records_[i]);
    records_.resize(kept);
    stride_ *= 2;
  }

  /// The sampled records, with the last of all, because the end of a run matters.
  std::vector<MetricsRecord> records() {
    if (!last_.empty()) add(last_);
    last_.clear();
    return std::move(records_);
  }

 private:
  /// A line that is no record costs a point, not the picture.
  void add(std::string_view line) {
    try {
      records_.push_back(decode_metrics(line));
    } catch (const Error&) {
      return;
    }
  }

  std::vector<MetricsRecord> records_;
  std::string last_;
  size_t seen_ = 0;
  size_t stride_ = 1;
};

}  // namespace

std::vector<MetricsRecord> sampled_metrics(const std::filesystem::path& metrics_jsonl) {
  constexpr int64_t kMostBytes = 256 << 20;  // in a fraction of a second
  constexpr size_t kMostKinds = 16;
  std::map<std::string, Sample, std::less<>> kinds;
  each_whole_line(
      metrics_jsonl,
      [&](std::string_view line) {
        const auto found = kinds.find(kind_of(line));
        if (found != kinds.end()) return found->second.take(line);
        if (kinds.size() < kMostKinds) kinds[std::string(kind_of(line))].take(line);
      },
      kMostBytes);
  std::vector<MetricsRecord> records;
  for (auto& [kind, sample] : kinds) {
    for (auto& record : sample.records()) records.push_back(std::move(record));
  }
  return records;
}

std::vector<Chart> run_charts(const std::vector<MetricsRecord>& records,
                              const std::vector<std::string>& logged) {
  std::vector<Chart> charts = {loss_chart(records)};
  const auto add = [&](const std::vector<Chart>& more) {
    charts.insert(charts.end(), more.begin(), more.end());
  };
  add(logged_charts(records, logged));
  add({metric_chart(records)});
  add(wide_metric_charts(records));
  add({lr_chart(records), speed_chart(records)});
  std::erase_if(charts, [](const Chart& chart) { return chart.series.empty(); });
  return charts;
}

bool write_curves(const std::filesystem::path& metrics_jsonl, const std::filesystem::path& svg,
                  const std::string& title, const std::vector<std::string>& logged) {
  const std::vector<Chart> charts = run_charts(sampled_metrics(metrics_jsonl), logged);
  if (charts.empty()) return false;
  write_file_atomically(svg, render_charts(title, charts));
  return true;
}

}  // namespace lockstep::inline internal
