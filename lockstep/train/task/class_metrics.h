#pragma once
// Metrics of a classifier that are sums over samples. All sums are whole numbers, so their bits do
// not depend on the order of addition, nor on the number of ranks.
//
// The first output: logits (N, K). The first target: labels (N), or for several classes a sample
// (N, K), where above 0.5 means present. In the latter case a class is predicted if its logit is
// above 0.

#include <memory>
#include <vector>

#include "lockstep/train.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// One class a sample, or any number of them.
bool has_one_class(const at::Tensor& targets);

/// (N, K) of 0 and 1: for labels the class with the highest logit, else those above 0.
at::Tensor predicted_classes(const at::Tensor& logits, const at::Tensor& targets);
/// (N, K) of 0 and 1. A label that is none of the classes gives a row of zeros.
at::Tensor true_classes(const at::Tensor& targets, int64_t num_classes);

/// ClsMetric: "acc", the share of samples that are right in all, and with more than 5 classes
/// "top_5". scikit-learn's accuracy_score and top_k_accuracy_score.
std::unique_ptr<Metric> accuracy_metric(int64_t num_classes);

/// TopKMetric: "top_K" for each of `ks`: a true class is among the K with the highest logits.
std::unique_ptr<Metric> top_k_metric(const std::vector<int64_t>& ks);

/// F1Metric: "f1", "precision" and "recall" for each of `averages`; see Average. A class without
/// predictions has precision 0, one without samples recall 0. A class with neither does not count,
/// as in scikit-learn.
std::unique_ptr<Metric> f1_metric(int64_t num_classes, const std::vector<Average>& averages);

/// What follows "f1", "precision" and "recall" in the names of an average: "", "_micro"; for
/// Average::kClass that of `number`.
std::string average_suffix(Average average, int64_t number = 0);

}  // namespace lockstep::inline internal
