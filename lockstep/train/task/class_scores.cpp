#include "lockstep/train/task/class_scores.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "lockstep/error.h"
#include "lockstep/evaluation.h"
#include "lockstep/train/task/class_metrics.h"
#include "lockstep/train/task/class_targets.h"

namespace lockstep::inline internal {
namespace {

bool has_class(RankedSample sample) {
  return (sample & 1) != 0;
}

bool same_score(RankedSample a, RankedSample b) {
  return a >> 1 == b >> 1;
}

/// Samples of equal score.
struct Group {
  size_t end = 0;  ///< Of its samples in the list.
  int64_t with = 0;
  int64_t without = 0;
};

Group group_at(std::span<const RankedSample> sorted, size_t begin) {
  Group group{begin};
  for (; group.end < sorted.size() && same_score(sorted[group.end], sorted[begin]); ++group.end) {
    ++(has_class(sorted[group.end]) ? group.with : group.without);
  }
  return group;
}

/// Samples times classes that cross the ranks at once: 64 MiB.
constexpr int64_t kAtOnce = 8 << 20;

/// Sorts a list of sorted parts, whose lengths are `rows`.
void merge_parts(std::vector<RankedSample>& all, const std::vector<int64_t>& rows) {
  auto merged = all.begin();
  for (const int64_t count : rows) {
    std::inplace_merge(all.begin(), merged, merged + count);
    merged += count;
  }
}

/// The mean of one figure over the classes that have it.
class RankedMetric final : public Metric {
 public:
  RankedMetric(std::string name, double RankFigures::*figure,
               std::shared_ptr<const ClassScores> scores)
      : name_(std::move(name)), figure_(figure), scores_(std::move(scores)) {}

  std::vector<std::string> metric_names() const override { return {name_}; }
  size_t num_sums() const override { return 1; }
  std::vector<double> sums(const Tensors&, const Batch& batch) override {
    return {static_cast<double>(batch.valid)};
  }
  EvalResult result(std::span<const double> sums) override {
    double total = 0;
    int64_t classes = 0;
    for (const auto& figures : scores_->figures()) {
      if (std::isnan(figures.*figure_)) continue;
      total += figures.*figure_;
      ++classes;
    }
    EvalResult result;
    result.samples = static_cast<int64_t>(sums[0]);
    result.metrics = {{name_, classes > 0 ? total / static_cast<double>(classes)
                                          : std::numeric_limits<double>::quiet_NaN()}};
    return result;
  }

 private:
  std::string name_;
  double RankFigures::*figure_;
  std::shared_ptr<const ClassScores> scores_;
};

}  // namespace

RankedSample ranked_sample(float score, bool present) {
  // Floats as whole numbers of the same order. Adding 0 makes -0 equal to 0.
  constexpr uint32_t kSign = 0x80000000;
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);
  uint32_t order = (bits & kSign) != 0 ? ~bits : bits | kSign;
  if (std::isnan(score)) order = 0;
  return RankedSample{order} << 1 | (present ? 1 : 0);
}

RankFigures rank_figures(std::span<const RankedSample> sorted) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  int64_t with = 0;
  for (const auto sample : sorted) with += has_class(sample) ? 1 : 0;
  const int64_t without = static_cast<int64_t>(sorted.size()) - with;
  int64_t halves = 0;        // of pairs in the right order
  int64_t lower = 0;         // samples without the class, of lower scores
  int64_t left_with = with;  // samples with the class, from this score up
  double precision_sum = 0;
  for (size_t at = 0; at < sorted.size();) {
    const Group group = group_at(sorted, at);
    halves += group.with * (2 * lower + group.without);
    const auto from_here = static_cast<double>(sorted.size() - at);
    precision_sum += static_cast<double>(group.with) * (static_cast<double>(left_with) / from_here);
    lower += group.without;
    left_with -= group.with;
    at = group.end;
  }
  RankFigures figures{kNone, kNone};
  if (with > 0) figures.average_precision = precision_sum / static_cast<double>(with);
  if (with == 0 || without == 0) return figures;
  figures.auc =
      static_cast<double>(halves) / (2 * static_cast<double>(with) * static_cast<double>(without));
  return figures;
}

ClassScores::ClassScores(int64_t num_classes, bool by_itself)
    : num_classes_(num_classes), by_itself_(by_itself) {}

void ClassScores::clear() {
  scores_.clear();
  truth_.clear();
  figures_.clear();
}

void ClassScores::add(const at::Tensor& logits, const at::Tensor& targets) {
  if (logits.dim() != 2 || logits.size(1) != num_classes_) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("AucMetric and MapMetric need logits (N, {}), the network's last "
                            "dimension is {}",
                            num_classes_, logits.size(-1)));
  }
  check_measured_targets("AucMetric and MapMetric", logits, targets);
  const bool by_itself = by_itself_ || !has_one_class(targets);
  // In double precision a sure network's probabilities still differ.
  scores_.push_back(by_itself
                        ? logits.to(at::kFloat).clone()
                        : at::log_softmax(logits.to(at::kDouble), 1).to(at::kFloat).contiguous());
  truth_.push_back(true_classes(targets, num_classes_).to(at::kBool));
}

void ClassScores::join(ProcessGroup& group) {
  // The empty ones are for a rank without samples.
  scores_.push_back(at::empty({0, num_classes_}, at::kFloat));
  truth_.push_back(at::empty({0, num_classes_}, at::kBool));
  const auto scores = at::cat(scores_).t().contiguous();  // (K, n)
  const auto truth = at::cat(truth_).t().contiguous();
  clear();
  std::vector<int64_t> rows(static_cast<size_t>(group.size()));
  const int64_t own = scores.size(1);
  group.all_gather(&own, rows.data(), 1, DType::kInt64).wait();
  int64_t total = 0;
  for (const int64_t count : rows) total += count;
  const int64_t step = std::max<int64_t>(1, kAtOnce / std::max<int64_t>(1, total));
  for (int64_t first = 0; first < num_classes_; first += step) {
    rank_classes(group, first, std::min(step, num_classes_ - first), scores, truth, rows);
  }
}

void ClassScores::rank_classes(ProcessGroup& group, int64_t first, int64_t count,
                               const at::Tensor& scores, const at::Tensor& truth,
                               const std::vector<int64_t>& rows) {
  const int64_t own = scores.size(1);
  // A row is a sample: (n, count), each column sorted.
  auto sorted = at::empty({own, count}, at::kLong);
  std::vector<RankedSample> column(static_cast<size_t>(own));
  for (int64_t i = 0; i < count; ++i) {
    const auto* const score = scores.data_ptr<float>() + (first + i) * own;
    const auto* const has_class = truth.data_ptr<bool>() + (first + i) * own;
    for (int64_t n = 0; n < own; ++n) {
      column[static_cast<size_t>(n)] = ranked_sample(score[n], has_class[n]);
    }
    std::sort(column.begin(), column.end());
    for (int64_t n = 0; n < own; ++n) {
      sorted.data_ptr<int64_t>()[n * count + i] =
          static_cast<int64_t>(column[static_cast<size_t>(n)]);
    }
  }
  const auto all = gather_rows(group, sorted).contiguous();
  column.resize(static_cast<size_t>(all.size(0)));
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t n = 0; n < all.size(0); ++n) {
      column[static_cast<size_t>(n)] =
          static_cast<RankedSample>(all.data_ptr<int64_t>()[n * count + i]);
    }
    merge_parts(column, rows);
    figures_.push_back(rank_figures(column));
  }
}

std::unique_ptr<Metric> auc_metric(std::shared_ptr<const ClassScores> scores) {
  return std::make_unique<RankedMetric>("auc", &RankFigures::auc, std::move(scores));
}

std::unique_ptr<Metric> map_metric(std::shared_ptr<const ClassScores> scores) {
  return std::make_unique<RankedMetric>("map", &RankFigures::average_precision, std::move(scores));
}

}  // namespace lockstep::inline internal
