#include "lockstep/train/task/class_metrics.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/topk.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/train/task/class_targets.h"

namespace lockstep::inline internal {
namespace {

double total_of(const at::Tensor& flags) {
  return static_cast<double>(flags.sum().item().toLong());
}

/// The counted rows of a batch.
struct Rows {
  at::Tensor logits;
  at::Tensor targets;
  /// `metric`: for errors. Errors: those of check_measured_targets(), of the counted rows.
  Rows(const char* metric, const Tensors& outputs, const Batch& batch)
      : logits(outputs.front()), targets(batch.targets.front()) {
    check_class_targets(metric, logits, targets);
    logits = logits.narrow(0, 0, batch.valid);
    targets = targets.narrow(0, 0, batch.valid);
    check_measured_targets(metric, logits, targets);
  }
};

/// (N, most) of flags: whether a true class is among the 1, 2, ... most highest logits.
at::Tensor hits_within(const Rows& rows, int64_t most) {
  const auto best = std::get<1>(at::topk(rows.logits, most, 1));  // best first
  const auto hits = has_one_class(rows.targets) ? best.eq(rows.targets.unsqueeze(1))
                                                : rows.targets.gather(1, best).gt(0.5);
  return hits.to(at::kLong).cumsum(1).gt(0);
}

/// acc of several classes a sample: all of them are right.
double all_right(const Rows& rows) {
  const auto right = predicted_classes(rows.logits, rows.targets)
                         .eq(true_classes(rows.targets, rows.logits.size(1)));
  return total_of(right.all(1));
}

class AccuracyMetric final : public Metric {
 public:
  explicit AccuracyMetric(int64_t num_classes) : has_top_5_(num_classes > 5) {}

  std::vector<std::string> metric_names() const override {
    if (has_top_5_) return {"acc", "top_5"};
    return {"acc"};
  }
  size_t num_sums() const override { return 3; }
  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override {
    if (batch.valid == 0) return {0, 0, 0};
    const Rows rows("ClsMetric", outputs, batch);
    const auto hits = hits_within(rows, std::min<int64_t>(5, rows.logits.size(1)));
    // Of equal logits argmax takes the first, as predict and the confusion matrix do.
    const double right = has_one_class(rows.targets)
                             ? total_of(at::argmax(rows.logits, 1).eq(rows.targets))
                             : all_right(rows);
    return {static_cast<double>(batch.valid), right, total_of(hits.select(1, -1))};
  }
  EvalResult result(std::span<const double> sums) override {
    const double count = std::max(1.0, sums[0]);
    EvalResult result;
    result.samples = static_cast<int64_t>(sums[0]);
    result.metrics = {{"acc", sums[1] / count}};
    if (has_top_5_) result.metrics.emplace_back("top_5", sums[2] / count);
    return result;
  }

 private:
  bool has_top_5_;
};

class TopKMetric final : public Metric {
 public:
  explicit TopKMetric(std::vector<int64_t> ks) : ks_(std::move(ks)) {}

  std::vector<std::string> metric_names() const override {
    std::vector<std::string> names;
    for (const int64_t k : ks_) names.push_back(fmt::format("top_{}", k));
    return names;
  }
  size_t num_sums() const override { return 1 + ks_.size(); }
  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override {
    std::vector<double> sums(num_sums());
    if (batch.valid == 0) return sums;
    const Rows rows("TopKMetric", outputs, batch);
    const int64_t classes = rows.logits.size(1);
    const int64_t most = *std::max_element(ks_.begin(), ks_.end());
    const auto hits = hits_within(rows, std::min(most, classes));
    sums[0] = static_cast<double>(batch.valid);
    for (size_t i = 0; i < ks_.size(); ++i) {
      sums[1 + i] = total_of(hits.select(1, std::min(ks_[i], classes) - 1));
    }
    return sums;
  }
  EvalResult result(std::span<const double> sums) override {
    const auto names = metric_names();
    EvalResult result;
    result.samples = static_cast<int64_t>(sums[0]);
    for (size_t i = 0; i < names.size(); ++i) {
      result.metrics.emplace_back(names[i], sums[1 + i] / std::max(1.0, sums[0]));
    }
    return result;
  }

 private:
  std::vector<int64_t> ks_;
};

/// Of one class, or of several together.
struct Counts {
  double right = 0;  ///< Present and predicted.
  double predicted = 0;
  double present = 0;

  bool empty() const { return predicted + present == 0; }
  std::array<double, 3> figures() const {  ///< f1, precision, recall
    const auto share = [](double part, double of) { return of > 0 ? part / of : 0; };
    return {share(2 * right, predicted + present), share(right, predicted), share(right, present)};
  }
  Counts& operator+=(const Counts& other) {
    right += other.right;
    predicted += other.predicted;
    present += other.present;
    return *this;
  }
};

constexpr std::array<const char*, 3> kFigures = {"f1", "precision", "recall"};

class F1Metric final : public Metric {
 public:
  F1Metric(int64_t num_classes, std::vector<Average> averages)
      : num_classes_(num_classes), averages_(std::move(averages)) {}

  std::vector<std::string> metric_names() const override {
    std::vector<std::string> names;
    for (const auto& suffix : suffixes()) {
      for (const char* figure : kFigures) names.push_back(figure + suffix);
    }
    return names;
  }

  /// The samples; then of each class those that are right, predicted, present.
  size_t num_sums() const override { return 1 + 3 * static_cast<size_t>(num_classes_); }

  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override {
    std::vector<double> sums(num_sums());
    if (batch.valid == 0) return sums;
    const Rows rows("F1Metric", outputs, batch);
    const auto predicted = predicted_classes(rows.logits, rows.targets);
    const auto present = true_classes(rows.targets, rows.logits.size(1));
    sums[0] = static_cast<double>(batch.valid);
    size_t column = 0;
    for (const auto& flags : {predicted * present, predicted, present}) {
      const auto totals = flags.sum(0).contiguous();
      for (int64_t i = 0; i < std::min(num_classes_, totals.size(0)); ++i) {
        sums[1 + 3 * static_cast<size_t>(i) + column] =
            static_cast<double>(totals.data_ptr<int64_t>()[i]);
      }
      ++column;
    }
    return sums;
  }

  EvalResult result(std::span<const double> sums) override {
    EvalResult result;
    result.samples = static_cast<int64_t>(sums[0]);
    std::vector<double> values;
    for (const auto average : averages_) append(values, average, sums);
    const auto names = metric_names();
    for (size_t i = 0; i < names.size(); ++i) result.metrics.emplace_back(names[i], values[i]);
    return result;
  }

 private:
  std::vector<std::string> suffixes() const {
    std::vector<std::string> all;
    for (const auto average : averages_) {
      const int64_t count = average == Average::kClass ? num_classes_ : 1;
      for (int64_t i = 0; i < count; ++i) all.push_back(average_suffix(average, i));
    }
    return all;
  }

  void append(std::vector<double>& values, Average average, std::span<const double> sums) const {
    Counts all;
    std::array<double, 3> totals{};
    double counted = 0;
    for (int64_t i = 0; i < num_classes_; ++i) {
      const auto own = sums.subspan(1 + 3 * static_cast<size_t>(i), 3);
      const Counts counts{own[0], own[1], own[2]};
      const auto figures = counts.figures();
      if (average == Average::kClass) values.insert(values.end(), figures.begin(), figures.end());
      if (counts.empty()) continue;
      all += counts;
      counted += 1;
      for (size_t j = 0; j < figures.size(); ++j) totals[j] += figures[j];
    }
    if (average == Average::kClass) return;
    if (average == Average::kMicro) totals = all.figures();
    for (const double total : totals) {
      values.push_back(average == Average::kMacro ? total / std::max(1.0, counted) : total);
    }
  }

  int64_t num_classes_;
  std::vector<Average> averages_;
};

}  // namespace

bool has_one_class(const at::Tensor& targets) {
  return targets.dim() == 1;
}

at::Tensor true_classes(const at::Tensor& targets, int64_t num_classes) {
  if (!has_one_class(targets)) return targets.gt(0.5).to(at::kLong);
  const auto classes = at::arange(num_classes, targets.options().dtype(at::kLong));
  return targets.unsqueeze(1).eq(classes).to(at::kLong);
}

at::Tensor predicted_classes(const at::Tensor& logits, const at::Tensor& targets) {
  if (!has_one_class(targets)) return logits.gt(0).to(at::kLong);
  return true_classes(at::argmax(logits, 1), logits.size(1));
}

std::unique_ptr<Metric> accuracy_metric(int64_t num_classes) {
  return std::make_unique<AccuracyMetric>(num_classes);
}

std::unique_ptr<Metric> top_k_metric(const std::vector<int64_t>& ks) {
  return std::make_unique<TopKMetric>(ks);
}

std::unique_ptr<Metric> f1_metric(int64_t num_classes, const std::vector<Average>& averages) {
  return std::make_unique<F1Metric>(num_classes, averages);
}

std::string average_suffix(Average average, int64_t number) {
  if (average == Average::kMacro) return "";
  return average == Average::kMicro ? "_micro" : fmt::format("_{}", number);
}

}  // namespace lockstep::inline internal
