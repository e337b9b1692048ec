#include "lockstep/train/task/metric_list.h"

#include <fmt/format.h>

#include <utility>

#include "lockstep/error.h"

namespace lockstep::inline internal {

MetricList only(std::unique_ptr<Metric> metric) {
  MetricList metrics;
  metrics.push_back(std::move(metric));
  return metrics;
}

std::vector<std::string> figure_names(const MetricList& metrics) {
  std::vector<std::string> all;
  for (const auto& metric : metrics) {
    const auto names = metric->metric_names();
    all.insert(all.end(), names.begin(), names.end());
  }
  return all;
}

std::vector<std::string> lower_figures(const MetricList& metrics) {
  std::vector<std::string> all;
  for (const auto& metric : metrics) {
    const auto names = metric->lower_is_better();
    all.insert(all.end(), names.begin(), names.end());
  }
  return all;
}

size_t num_sums(const MetricList& metrics) {
  size_t count = 0;
  for (const auto& metric : metrics) count += metric->num_sums();
  return count;
}

void add_sums(const MetricList& metrics, const Tensors& outputs, const Batch& batch,
              std::vector<double>& all) {
  for (const auto& metric : metrics) {
    const auto own = metric->sums(outputs, batch);
    if (own.size() != metric->num_sums()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("the metric gave {} sums, and num_sums() is {}", own.size(),
                              metric->num_sums()));
    }
    all.insert(all.end(), own.begin(), own.end());
  }
}

void add_results(const MetricList& metrics, std::span<const double> sums, EvalResult& all) {
  size_t at = 0;
  for (const auto& metric : metrics) {
    const auto own = metric->result(sums.subspan(at, metric->num_sums()));
    at += metric->num_sums();
    if (!all.loss) all.loss = own.loss;
    all.metrics.insert(all.metrics.end(), own.metrics.begin(), own.metrics.end());
    all.lines.insert(all.lines.end(), own.lines.begin(), own.lines.end());
    all.warnings.insert(all.warnings.end(), own.warnings.begin(), own.warnings.end());
  }
}

}  // namespace lockstep::inline internal
