#include "lockstep/train/task/class_metrics.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <mutex>

#include "lockstep/error.h"
#include "lockstep/train/task/class_scores.h"
#include "lockstep/train/task/classification.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"
#include "tests/train/expected.h"

namespace lockstep {
namespace {

/// Inputs, and scikit-learn's figures of them.
struct Samples {
  nlohmann::json all = expected_in("class_metrics_expected.json");
  bool several = false;
  at::Tensor logits;
  at::Tensor targets;

  explicit Samples(bool several_classes) : several(several_classes) {
    logits = matrix_of(all[several ? "several_logits" : "logits"]).to(at::kFloat);
    targets = several ? matrix_of(all["several_truth"]).to(at::kFloat) : labels_of(all["labels"]);
  }
  int64_t size() const { return logits.size(0); }
  int64_t classes() const { return logits.size(1); }
  const nlohmann::json& figures() const { return all[several ? "several" : "single"]; }
};

/// All built-in metrics.
ClassificationTask make_all(int64_t classes) {
  ClassificationParts parts;
  parts.loss = cross_entropy({});
  parts.scores = std::make_shared<ClassScores>(classes, false);
  parts.metrics.push_back(accuracy_metric(classes));
  parts.metrics.push_back(top_k_metric({1, 2, 3}));
  parts.metrics.push_back(f1_metric(classes, {Average::kMacro, Average::kMicro, Average::kClass}));
  parts.metrics.push_back(auc_metric(parts.scores));
  parts.metrics.push_back(map_metric(parts.scores));
  parts.confused_classes = classes;
  return ClassificationTask(std::move(parts));
}

struct Evaluated {
  EvalResult result;
  Confusion confusion;
};

/// The samples that a rank has of `ranks`: the first rank more, and the last none.
std::pair<int64_t, int64_t> share(int64_t samples, int rank, int ranks) {
  if (ranks == 1) return {0, samples};
  const int64_t first = samples / 2 + 1;
  const int64_t others = ranks == 2 ? samples - first : (samples - first) / (ranks - 2);
  if (rank == 0) return {0, first};
  const int64_t begin = std::min(samples, first + (rank - 1) * others);
  const bool last_with_some = ranks == 2 || rank == ranks - 2;
  if (ranks > 2 && rank == ranks - 1) return {samples, samples};
  return {begin, last_with_some ? samples : begin + others};
}

/// In batches of `batch_size` whose last row is padding.
Evaluated evaluate_on(int ranks, const Samples& samples, int64_t batch_size) {
  std::mutex mutex;
  Evaluated found;
  testing::run_rank_threads(ranks, [&](const World& world) {
    auto group = ProcessGroup::create(world);
    auto task = make_all(samples.classes());
    task.start_evaluation();
    std::vector<double> sums(task.num_sums());
    const auto [begin, end] = share(samples.size(), world.rank, world.size);
    for (int64_t at = begin; at < end; at += batch_size) {
      Batch batch;
      batch.valid = std::min(batch_size, end - at);
      const auto rows = [&](const at::Tensor& all) {
        return at::cat({all.narrow(0, at, batch.valid), all.narrow(0, 0, 1)});
      };
      batch.targets = {rows(samples.targets)};
      const auto own = task.sums({rows(samples.logits)}, batch);
      for (size_t i = 0; i < own.size(); ++i) sums[i] += own[i];
    }
    // The loss is no whole number, so evaluate() adds it in one order.
    sums[1] = 0;
    group.all_reduce(sums.data(), std::ssize(sums), DType::kFloat64, ReduceOp::kSum).wait();
    task.join_ranks(group);
    const Evaluated own{task.result(sums), *task.confusion()};
    const std::lock_guard lock(mutex);
    if (found.result.metrics.empty()) found = own;
    EXPECT_EQ(own.result.metrics, found.result.metrics) << "rank " << world.rank;
  });
  return found;
}

TEST(ClassificationTask, OutputsWithoutRowsStayAsTheyAre) {
  std::vector<std::vector<int64_t>> shapes;
  ClassificationParts parts;
  parts.loss = [&](const Tensors& outputs, const Tensors& targets) {
    for (const auto& output : outputs) shapes.push_back(output.sizes().vec());
    shapes.push_back(targets.front().sizes().vec());
    return outputs[1];
  };
  ClassificationTask task(std::move(parts));
  Batch batch;
  batch.images = at::zeros({4, 2});
  batch.targets = {at::zeros({4}, at::kLong)};
  batch.valid = 3;
  const Tensors outputs = {at::zeros({4, 5}), at::full({}, 0.5), at::zeros({8, 2})};
  EXPECT_EQ(task.sums(outputs, batch), (std::vector<double>{3, 1.5}));
  EXPECT_EQ(shapes, (std::vector<std::vector<int64_t>>{{3, 5}, {}, {8, 2}, {3}}));
}

void expect_figure(const EvalResult& result, const std::string& name, const nlohmann::json& value) {
  EXPECT_NEAR(result.metric(name), value.get<double>(), 1e-12) << name;
}

void expect_averages(const EvalResult& result, const nlohmann::json& averages, int64_t classes) {
  const std::vector<std::string> names = {"f1", "precision", "recall"};
  for (size_t i = 0; i < names.size(); ++i) {
    expect_figure(result, names[i], averages["macro"][i]);
    expect_figure(result, names[i] + "_micro", averages["micro"][i]);
    for (int64_t c = 0; c < classes; ++c) {
      expect_figure(result, names[i] + "_" + std::to_string(c),
                    averages["class"][i][static_cast<size_t>(c)]);
    }
  }
}

TEST(ClassMetrics, AreScikitLearns) {
  const Samples samples(false);
  const auto [result, confusion] = evaluate_on(1, samples, 7);
  EXPECT_EQ(result.samples, samples.size());
  expect_figure(result, "acc", samples.figures()["acc"]);
  for (const size_t k : {size_t{1}, size_t{2}, size_t{3}}) {
    expect_figure(result, "top_" + std::to_string(k), samples.figures()["top_k"][k - 1]);
  }
  expect_figure(result, "top_5", samples.figures()["top_k"][4]);
  expect_figure(result, "auc", samples.figures()["auc"]);
  expect_figure(result, "map", samples.figures()["map"]);
  expect_averages(result, samples.figures()["averages"], samples.classes());
  std::vector<int64_t> counts;
  for (const auto& row : samples.figures()["confusion"]) {
    for (const auto& count : row) counts.push_back(count.get<int64_t>());
  }
  EXPECT_EQ(confusion.counts, counts);
}

TEST(ClassMetrics, OfSeveralClassesASampleAreScikitLearns) {
  const Samples samples(true);
  const auto [result, confusion] = evaluate_on(1, samples, 7);
  EXPECT_EQ(result.samples, samples.size());
  for (const char* name : {"acc", "auc", "map"}) {
    expect_figure(result, name, samples.figures()[name]);
  }
  expect_averages(result, samples.figures()["averages"], samples.classes());
  EXPECT_EQ(confusion.samples(), 0);
}

TEST(ClassMetrics, HaveTheSameBitsOnAnyNumberOfRanks) {
  for (const bool several : {false, true}) {
    const Samples samples(several);
    const auto one = evaluate_on(1, samples, 40);
    for (const int ranks : {2, 3, 5}) {
      const auto more = evaluate_on(ranks, samples, 3);
      EXPECT_EQ(more.result.metrics, one.result.metrics) << ranks;
      EXPECT_EQ(more.confusion.counts, one.confusion.counts) << ranks;
    }
  }
}

TEST(ClassMetrics, OfAClassWithoutSamplesDoNotCount) {
  auto task = make_all(3);
  task.start_evaluation();
  Batch batch;
  batch.valid = 2;
  batch.targets = {torch::tensor({1, 1})};
  const auto sums = task.sums({torch::tensor({{0.f, 1.f, 0.5f}, {0.f, 1.f, 0.5f}})}, batch);
  testing::run_rank_threads(1, [&](const World& world) {
    auto group = ProcessGroup::create(world);
    task.join_ranks(group);
  });
  const auto result = task.result(sums);
  EXPECT_TRUE(std::isnan(result.metric("auc")));  // no pair of samples
  EXPECT_EQ(result.metric("map"), 1);
  EXPECT_EQ(result.metric("f1"), 1);
  EXPECT_EQ(result.metric("f1_0"), 0);
}

TEST(ClassMetrics, AnEvaluationForgetsTheOneBefore) {
  const Samples samples(false);
  auto task = make_all(samples.classes());
  Batch batch;
  batch.valid = samples.size();
  batch.targets = {samples.targets};
  testing::run_rank_threads(1, [&](const World& world) {
    auto group = ProcessGroup::create(world);
    task.sums({-samples.logits}, batch);  // an evaluation that is interrupted
    task.start_evaluation();
    const auto sums = task.sums({samples.logits}, batch);
    task.join_ranks(group);
    expect_figure(task.result(sums), "auc", samples.figures()["auc"]);
    EXPECT_EQ(task.confusion()->samples(), samples.size());
  });
}

TEST(ClassMetrics, NeedAsManyOutputsAsClasses) {
  auto task = make_all(4);
  Batch batch;
  batch.valid = 1;
  batch.targets = {torch::tensor({1})};
  const auto error = error_of([&] { task.sums({torch::zeros({1, 3})}, batch); });
  EXPECT_STREQ(error.what(),
               "AucMetric and MapMetric need logits (N, 4), the network's last dimension is 3");
}

std::string refusal_of(Metric& metric, const at::Tensor& logits, const at::Tensor& targets) {
  Batch batch;
  batch.valid = logits.size(0);
  batch.targets = {targets};
  const auto error = error_of([&] { metric.sums({logits}, batch); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  return error.what();
}

TEST(ClassMetrics, RefuseTargetsThatAreNoClasses) {
  const auto curve = torch::rand({4, 1, 64});
  const std::string shapes =
      ": the network gave (4, 1, 64), the targets are (4, 1, 64): they must be labels (N), or a "
      "number for each class (N, K), for logits (N, K)";
  EXPECT_EQ(refusal_of(*accuracy_metric(1), curve, curve), "ClsMetric" + shapes);
  EXPECT_EQ(refusal_of(*top_k_metric({1}), curve, curve), "TopKMetric" + shapes);
  EXPECT_EQ(refusal_of(*f1_metric(1, {Average::kMacro}), curve, curve), "F1Metric" + shapes);
  const auto numbers = torch::tensor({{0.0f}, {1.0f}, {-0.5f}});
  EXPECT_EQ(refusal_of(*accuracy_metric(1), numbers, numbers),
            "ClsMetric: a target is -0.5: a number for each class must be from 0 to 1");
  const auto undefined = torch::full({1, 2}, std::nan(""));
  EXPECT_EQ(refusal_of(*top_k_metric({1}), undefined, undefined),
            "TopKMetric: a target is nan: a number for each class must be from 0 to 1");
  const auto several = torch::tensor({{0.0f, 1.25f}});
  EXPECT_EQ(refusal_of(*f1_metric(2, {Average::kMacro}), several, several),
            "F1Metric: a target is 1.25: a number for each class must be from 0 to 1");
  ClassScores scores(2, false);
  EXPECT_EQ(error_of([&] { scores.add(several, several); }).code(), ErrorCode::kInvalidArgument);
}

TEST(ClassMetrics, TakeSharesAndASingleClass) {
  Batch batch;
  batch.valid = 2;
  batch.targets = {torch::tensor({{0.25f, 0.75f}, {1.0f, 0.0f}})};
  const auto logits = torch::tensor({{-1.0f, 1.0f}, {1.0f, -1.0f}});
  EXPECT_EQ(accuracy_metric(2)->sums({logits}, batch)[1], 2);
  batch.targets = {torch::tensor({{1.0f}, {0.0f}})};
  EXPECT_EQ(accuracy_metric(1)->sums({logits.narrow(1, 0, 1)}, batch)[1], 0);
  batch.targets = {torch::tensor({{0.05f}, {0.95f}})};
  EXPECT_EQ(accuracy_metric(1)->sums({logits.narrow(1, 0, 1)}, batch)[1], 2);
  batch.targets = {torch::tensor({1, 0})};
  EXPECT_EQ(accuracy_metric(2)->sums({logits}, batch)[1], 2);
}

TEST(ClassMetrics, TakeSharesThatRoundingPutBeyondOne) {
  Batch batch;
  batch.valid = 2;
  batch.targets = {torch::tensor({{-1e-7f, 1.0000001f}, {1.0000001f, -1e-7f}})};
  const auto logits = torch::tensor({{-1.0f, 1.0f}, {1.0f, -1.0f}});
  EXPECT_EQ(accuracy_metric(2)->sums({logits}, batch)[1], 2);
}

TEST(ClassMetrics, DoNotLookAtPadding) {
  Batch batch;
  batch.valid = 1;
  batch.targets = {torch::tensor({{0.0f, 1.0f}, {std::nanf(""), 7.0f}})};
  const auto logits = torch::tensor({{-1.0f, 1.0f}, {1.0f, -1.0f}});
  EXPECT_EQ(accuracy_metric(2)->sums({logits}, batch)[1], 1);
  EXPECT_EQ(f1_metric(2, {Average::kMicro})->sums({logits}, batch)[0], 1);
}

}  // namespace
}  // namespace lockstep
