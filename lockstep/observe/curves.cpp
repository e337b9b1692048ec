#include "lockstep/observe/curves.h"

#include <algorithm>
#include <functional>
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

/// Whether an evaluated value is a score.
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

std::vector<Chart> run_charts(const std::vector<MetricsRecord>& records) {
  std::vector<Chart> charts;
  for (const Chart& chart : {loss_chart(records), metric_chart(records), lr_chart(records)}) {
    if (!chart.series.empty()) charts.push_back(chart);
  }
  return charts;
}

bool write_curves(const std::filesystem::path& metrics_jsonl, const std::filesystem::path& svg,
                  const std::string& title) {
  const std::vector<Chart> charts = run_charts(sampled_metrics(metrics_jsonl));
  if (charts.empty()) return false;
  write_file_atomically(svg, render_charts(title, charts));
  return true;
}

}  // namespace lockstep::inline internal
