// Built-in losses and metrics as entries of their registries, and within registered ones.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/models/loss/ctc_loss.h"
#include "lockstep/models/loss/db_loss.h"
#include "lockstep/train.h"
#include "lockstep/train/config/task_settings.h"
#include "lockstep/train/config/yaml_writer.h"
#include "lockstep/train/part_makers.h"
#include "lockstep/train/task/class_losses.h"
#include "lockstep/train/task/class_metrics.h"
#include "lockstep/train/task/logged_values.h"
#include "lockstep/train/task/text_metrics.h"
#include "tests/support/error_of.h"
#include "tests/train/config/configs.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

const LossPart kWithSquare("with_square", "one more term", [](Section& settings) -> LoggedLoss {
  double square = 0;
  settings.read("square", square, {0, 9}, "of the mean square of outputs");
  std::string of = "FocalLoss";
  settings.read("of", of, "the other terms");
  Section base = settings.section("base");
  const auto loss = losses().read(of, base);
  base.finish();
  const auto sum = [=](const Tensors& outputs, const Tensors& targets) {
    return loss.function(outputs, targets) + square * outputs.front().square().mean();
  };
  return {sum, loss.log_names};
});

const LossPart kMeanOfMask("mean_of_mask", "a target by its name", [](Section&) -> LossFunction {
  return [](const Tensors&, const Tensors& targets) { return targets["mask"].mean(); };
});

/// The figures of another metric, each under a name of its own.
class RenamedFigures final : public Metric {
 public:
  explicit RenamedFigures(std::unique_ptr<Metric> metric) : metric_(std::move(metric)) {}

  std::vector<std::string> metric_names() const override {
    auto names = metric_->metric_names();
    for (auto& name : names) name = "own_" + name;
    return names;
  }
  size_t num_sums() const override { return metric_->num_sums(); }
  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override {
    return metric_->sums(outputs, batch);
  }
  EvalResult result(std::span<const double> sums) override {
    auto result = metric_->result(sums);
    for (auto& [name, figure] : result.metrics) name = "own_" + name;
    return result;
  }

 private:
  std::unique_ptr<Metric> metric_;
};

const MetricPart kRenamed("renamed", "figures of another", [](Section& settings) -> MetricMaker {
  std::string of = "F1Metric";
  settings.read("of", of, "the other one");
  Section base = settings.section("base");
  const auto make = metrics().read(of, base);
  base.finish();
  return [=](int64_t classes) { return std::make_unique<RenamedFigures>(make(classes)); };
});

class LossesAndMetrics : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_built_in_parts(); }
};

/// The entry `name`, with `settings` in YAML.
template <typename Made>
Made read_entry(const Registry<Made>& registry, const std::string& name,
                const std::string& settings = "{}") {
  Node node = parse_yaml(settings, "t.yaml");
  ConfigSection section(node, "base");
  auto made = registry.read(name, section);
  section.finish();
  return made;
}

/// Without the place, where that is the whole section.
template <typename Made>
std::string refusal_of_entry(const Registry<Made>& registry, const std::string& name,
                             const std::string& settings = "{}") {
  const auto error = error_of([&] { read_entry(registry, name, settings); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  const std::string place = "t.yaml:1: base: ", text = error.what();
  return text.starts_with(place) ? text.substr(place.size()) : text;
}

/// `parts` of all tasks are the built-in entries, and make something, or refuse with the reason.
template <typename Made, typename Part>
void expect_entries(const Registry<Made>& registry, std::vector<Part> TaskSettings::*parts) {
  size_t count = 0;
  for (const auto& task : all_tasks()) {
    for (const auto& part : task.*parts) {
      SCOPED_TRACE(part.name);
      ++count;
      const auto* const entry = find_named(registry.parts(), part.name);
      ASSERT_NE(entry, nullptr);
      EXPECT_TRUE(entry->built_in);
      EXPECT_EQ(entry->about, part.about);
      if (part.alone == nullptr) {
        EXPECT_NO_THROW(read_entry(registry, part.name));
      } else {
        EXPECT_EQ(refusal_of_entry(registry, part.name),
                  part.name + " cannot be a part of another: " + part.alone);
      }
    }
  }
  EXPECT_EQ(parts_of(registry, true).size(), count);
}

TEST_F(LossesAndMetrics, AreEntriesOfTheirRegistries) {
  expect_entries(losses(), &TaskSettings::losses);
  expect_entries(metrics(), &TaskSettings::metrics);
}

TEST_F(LossesAndMetrics, ThatNeedMoreThanAPartGetsSayWhat) {
  EXPECT_EQ(refusal_of_entry(losses(), "DistillationLoss"),
            "DistillationLoss cannot be a part of another: its teacher needs the batch's inputs, "
            "which a LossFunction does not get");
  for (const char* name : {"AucMetric", "MapMetric"}) {
    EXPECT_EQ(refusal_of_entry(metrics(), name),
              std::string(name) +
                  " cannot be a part of another: it ranks the scores of all "
                  "samples, which no sums over them can hold");
  }
}

TEST_F(LossesAndMetrics, MistakesNameTheNearest) {
  const auto has = [](const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  has(refusal_of_entry(losses(), "FocalLos"),
      "no part 'FocalLos' is registered, did you mean 'FocalLoss'? (there are: "
      "CrossEntropySmooth, FocalLoss, ");
  has(refusal_of_entry(metrics(), "F1Metrik"), "did you mean 'F1Metric'? (there are: ClsMetric, ");
  has(fault_in(kPictures, {"loss={name: with_square, base: {gama: 3}}"}),
      "unknown key 'loss.base.gama', did you mean 'gamma'?");
  has(fault_in(kPictures, {"loss={name: with_square, base: {gamma: -1}}"}),
      "loss.base.gamma must be a number from 0 to 100, not '-1'");
  has(fault_in(kPictures, {"metric={name: renamed, main_indicator: own_f1, base: {avrage: x}}"}),
      "unknown key 'metric.base.avrage', did you mean 'average'?");
  has(fault_in(kPictures, {"metric={name: renamed, main_indicator: own_f1, base: {average: x}}"}),
      "metric.base.average must be some of macro, micro, class, not 'x'");
}

/// Six samples of ten classes.
struct ScoredSamples {
  ScoredSamples() {
    torch::manual_seed(3);
    logits = torch::randn({6, kTinyClasses});
    batch.valid = 6;
    batch.targets = {torch::tensor({0, 1, 1, 4, 9, 4})};
  }
  at::Tensor logits;
  Batch batch{};
};

LoggedLoss registered_loss(const char* text, const std::string& section) {
  return std::get<OwnLoss>(read_text(text, {"loss=" + section}).loss).make;
}

TEST_F(LossesAndMetrics, ARegisteredLossAddsATerm) {
  const ScoredSamples samples;
  const auto config = read_text(
      kPictures, {"loss={name: with_square, square: 0.5, base: {gamma: 3, alpha: 0.25}}"});
  const auto loss = std::get<OwnLoss>(config.loss).make;
  const auto expected =
      focal_loss(samples.logits, samples.batch.targets[0], {.gamma = 3, .alpha = {0.25}}) +
      0.5 * samples.logits.square().mean();
  EXPECT_TRUE(at::equal(loss.function({samples.logits}, samples.batch.targets), expected));
  EXPECT_TRUE(loss.log_names.empty());
  EXPECT_NE(write_yaml(config.effective).find("gamma: 3"), std::string::npos);
}

TEST_F(LossesAndMetrics, ALossTrainsWithinARegisteredOne) {
  auto plain = tiny_config(), within = tiny_config();
  plain.loss = FocalConfig{.gamma = 1.5};
  within.loss = read_text(kPictures, {"loss={name: with_square, base: {gamma: 1.5}}"}).loss;
  const auto first = run_tiny(1, plain)[0], second = run_tiny(1, within)[0];
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_TRUE(same_weights(first, second));
}

TEST_F(LossesAndMetrics, WeightsAreAsManyAsClasses) {
  const ScoredSamples samples;
  for (const auto& [name, key] : {std::pair<std::string, std::string>{"FocalLoss", "alpha"},
                                  {"BCEWithLogitsLoss", "pos_weight"}}) {
    const auto loss = read_entry(losses(), name, "{" + key + ": [1, 2, 3]}");
    const auto error = error_of([&] { loss.function({samples.logits}, samples.batch.targets); });
    EXPECT_EQ(error.what(), name + ": " + key + " has 3 numbers, the network gave (6, 10)");
  }
}

/// A batch of a detector: its output in training, and targets.
struct MapsAndTargets {
  MapsAndTargets() {
    torch::manual_seed(4);
    const auto mask = [](double part) { return (torch::rand({2, 6, 7}) < part).to(at::kFloat); };
    output = torch::rand({2, 3, 6, 7}) * 0.9 + 0.05;
    targets = {{"binary_map", mask(0.2).unsqueeze(1)},
               {"mask", mask(0.9)},
               {"thresh_map", torch::rand({2, 6, 7})},
               {"thresh_mask", mask(0.4)}};
  }
  at::Tensor output;
  Tensors targets;
};

TEST_F(LossesAndMetrics, ADetectorsLossHasItsTerms) {
  const MapsAndTargets maps;
  const auto expected = make_db_loss({.l1_scale = 2});
  const auto sum = (*expected)(maps.output, maps.targets);
  const auto own =
      registered_loss(kDetector, "{name: with_square, of: DBLoss, base: {l1_scale: 2}}");
  EXPECT_TRUE(at::equal(own.function({maps.output}, maps.targets), sum));
  EXPECT_EQ(own.log_names, expected->term_names());

  std::vector<at::Tensor> values;
  const LoggedValues all(own.log_names, values);
  own.function({maps.output}, maps.targets);
  ASSERT_EQ(values.size(), expected->terms().size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(at::equal(values[i], expected->terms()[i])) << own.log_names[i];
  }
}

TEST_F(LossesAndMetrics, TermsWithoutANameInTheRunAreLeftOut) {
  const MapsAndTargets maps;
  const auto loss = read_entry(losses(), "DBLoss");
  const std::vector<std::string> names = {"loss_thresh", "another"};
  std::vector<at::Tensor> values;
  const LoggedValues some(names, values);
  loss.function({maps.output}, maps.targets);
  EXPECT_TRUE(values[0].defined());
  EXPECT_FALSE(values[1].defined());
}

TEST_F(LossesAndMetrics, ARecognisersLossTakesOneOutput) {
  torch::manual_seed(5);
  const auto output = torch::randn({5, 2, 4});
  const Tensors targets = {torch::tensor({0, 1, 3, 2, 3, 3}, at::kInt).view({2, 3})};
  const auto loss = read_entry(losses(), "CTCLoss", "{pred_seq_len: 5, max_label_len: 3}");
  const auto expected = (*make_ctc_loss({.pred_seq_len = 5, .max_label_len = 3}))(output, targets);
  EXPECT_TRUE(at::equal(loss.function({output}, targets), expected));
  EXPECT_STREQ(error_of([&] {
                 loss.function({output, output}, targets);
               }).what(),
               "the network has 2 outputs; of text it needs one");
  EXPECT_EQ(refusal_of_entry(losses(), "CTCLoss", "{pred_seq_len: 3, max_label_len: 3}")
                .find("t.yaml:1: base.pred_seq_len must be above max_label_len (3), not 3"),
            0U);
}

TEST_F(LossesAndMetrics, ARegisteredLossOfTextGetsTargetsByName) {
  const MapsAndTargets maps;
  const auto task = make_task(read_text(kDetector, {"loss={name: mean_of_mask}"}));
  EXPECT_TRUE(at::equal(task->loss({maps.output}, maps.targets), maps.targets["mask"].mean()));
}

/// `task` has the metric with the figures `names`, and the registered one around it.
void expect_same_figures(Task& task, const Tensors& outputs, const Batch& batch,
                         const std::vector<std::string>& names) {
  const auto result = task.result(task.sums(outputs, batch));
  EXPECT_EQ(result.metrics.size(), 2 * names.size());
  for (const auto& name : names) EXPECT_EQ(result.metric("own_" + name), result.metric(name));
}

TEST_F(LossesAndMetrics, ARegisteredMetricHasTheFiguresOfAnother) {
  const ScoredSamples samples;
  const auto task = make_task(
      read_text(kPictures, {"metric={name: [F1Metric, renamed], average: [micro, class], base: "
                            "{average: [micro, class]}}"}));
  const auto f1 = f1_metric(kTinyClasses, {Average::kMicro, Average::kClass});
  expect_same_figures(*task, {samples.logits}, samples.batch, f1->metric_names());
  const auto result = f1->result(f1->sums({samples.logits}, samples.batch));
  const auto own = read_entry(metrics(), "F1Metric", "{average: [micro, class]}")(kTinyClasses);
  EXPECT_EQ(own->result(own->sums({samples.logits}, samples.batch)).metrics, result.metrics);
}

TEST_F(LossesAndMetrics, AMetricFitsTheNumberOfClasses) {
  const auto fault = [](const MetricMaker& make, int64_t classes) {
    return std::string(error_of([&] { make(classes); }).what());
  };
  const auto top_k = read_entry(metrics(), "TopKMetric", "{k: [1, 3]}");
  EXPECT_EQ(top_k(10)->metric_names(), (std::vector<std::string>{"top_1", "top_3"}));
  EXPECT_EQ(fault(top_k, 2), "metric: k of TopKMetric has 3, model.head.num_classes is 2");
  EXPECT_EQ(fault(read_entry(metrics(), "F1Metric"), 0),
            "metric: F1Metric needs model.head.num_classes");
  EXPECT_EQ(read_entry(metrics(), "ClsMetric")(10)->metric_names(),
            (std::vector<std::string>{"acc", "top_5"}));
}

TextPolygon box_at(float x, float y) {
  return {{{x, y}, {x + 60, y}, {x + 60, y + 24}, {x, y + 24}}};
}

Batch batch_with(TextPicture picture) {
  Batch batch;
  batch.valid = 1;
  set_text_pictures(batch, {std::move(picture)});
  return batch;
}

std::vector<std::pair<std::string, double>> figures_of_text(Metric& metric, const Batch& batch) {
  return metric.result(metric.sums({}, batch)).metrics;
}

TEST_F(LossesAndMetrics, ADetectorsMetricHasItsSettings) {
  const auto batch = batch_with(
      {.truth = {box_at(20, 20), box_at(20, 80)}, .found = {box_at(20, 20), box_at(22, 20)}});
  const auto strict = read_entry(metrics(), "DetMetric", "{one_to_one: True}")(0);
  const auto figures = figures_of_text(*strict, batch);
  EXPECT_EQ(figures, figures_of_text(*det_metric({.one_to_one = true}), batch));
  EXPECT_NE(figures, figures_of_text(*read_entry(metrics(), "DetMetric")(0), batch));
}

TEST_F(LossesAndMetrics, ADetectorsMetricMayBeWithinARegisteredOne) {
  const auto task =
      make_task(read_text(kDetector, {"metric={name: [DetMetric, renamed], of: DetMetric}"}));
  const auto map = torch::zeros({1, 1, 128, 128});
  map.narrow(2, 26, 12).narrow(3, 26, 48).fill_(0.9);
  const auto batch = batch_with({.truth = {box_at(20, 20), box_at(20, 80)}});
  expect_same_figures(*task, {map}, batch, {"recall", "precision", "f-score"});
  EXPECT_EQ(task->result(task->sums({map}, batch)).metric("recall"), 0.5);
}

TEST_F(LossesAndMetrics, ARecognisersMetricHasItsSettings) {
  const auto batch = batch_with({.label = "Ab", .read = "ab"});
  ocr::RecMetricOptions options;
  options.lower = options.filter_ood = false;
  const auto exact = read_entry(metrics(), "RecMetric", "{lower: False, filter_ood: False}")(37);
  const auto figures = figures_of_text(*exact, batch);
  EXPECT_EQ(figures, figures_of_text(*rec_metric(options), batch));
  EXPECT_EQ(figures[0].second, 0);
  EXPECT_EQ(figures_of_text(*read_entry(metrics(), "RecMetric")(37), batch)[0].second, 1);
}

}  // namespace
}  // namespace lockstep
