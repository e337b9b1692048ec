#pragma once
// Several metrics as one: their figures, one after the other.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/train.h"

namespace lockstep::inline internal {

using MetricList = std::vector<std::unique_ptr<Metric>>;

MetricList only(std::unique_ptr<Metric> metric);

std::vector<std::string> figure_names(const MetricList& metrics);
/// Those of which less is better.
std::vector<std::string> lower_figures(const MetricList& metrics);
size_t num_sums(const MetricList& metrics);
/// Appends those of each metric. Errors: kInvalidArgument if a metric gives another number of them
/// than its num_sums().
void add_sums(const MetricList& metrics, const Tensors& outputs, const Batch& batch,
              std::vector<double>& all);
/// Adds each metric's figures and lines, and the first loss unless `all` has one. `sums`: those of
/// add_sums().
void add_results(const MetricList& metrics, std::span<const double> sums, EvalResult& all);

}  // namespace lockstep::inline internal
