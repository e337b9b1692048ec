// Losses and metrics of a classifier.

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/yaml_reader.h"

namespace lockstep {
namespace {

constexpr auto kClasses = R"(model:
  type: cls
  backbone: {name: resnet18}
  head: {num_classes: 3}
train:
  ckpt_save_dir: out
  dataset: {data_dir: d}
  loader: {batch_size: 32}
)";

Config read_classes(const std::vector<std::string>& overrides = {}) {
  Node tree = parse_yaml(kClasses, "a.yaml");
  apply_overrides(tree, overrides);
  return read_config(std::move(tree));
}

std::string class_fault(const std::string& override_item) {
  try {
    read_classes({override_item});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    const std::string text = error.what();
    const std::string place = "-o " + override_item + ": ";
    return text.starts_with(place) ? text.substr(place.size()) : text;
  }
  ADD_FAILURE() << "no error";
  return "";
}

using Names = std::vector<std::string>;

TEST(ClassLoss, IsReadByItsName) {
  const auto focal = std::get<FocalConfig>(
      read_classes({"loss={name: FocalLoss, gamma: 1.5, alpha: [1, 2, 0.5]}"}).loss);
  EXPECT_EQ(focal.gamma, 1.5);
  EXPECT_EQ(focal.alpha, (std::vector<double>{1, 2, 0.5}));
  const auto bce = std::get<BceConfig>(
      read_classes({"loss={name: BCEWithLogitsLoss, pos_weight: 3, sum_classes: True}"}).loss);
  EXPECT_EQ(bce.pos_weight, std::vector<double>{3});
  EXPECT_TRUE(bce.sum_classes);
}

TEST(ClassLoss, ATeacherIsAModelWithWeights) {
  const auto config = std::get<DistillationConfig>(
      read_classes({"loss={name: DistillationLoss, temperature: 2, teacher: {backbone: {name: "
                    "resnet50}, head: {num_classes: 3}, pretrained: t.safetensors}}"})
          .loss);
  EXPECT_EQ(config.temperature, 2);
  EXPECT_EQ(config.weight, 0.5);
  EXPECT_EQ(config.teacher.backbone.name, "resnet50");
  EXPECT_EQ(config.teacher.pretrained, "t.safetensors");
}

TEST(ClassLoss, FaultsAreNamed) {
  EXPECT_EQ(class_fault("loss={name: FocalLos}"),
            "loss.name must be one of CrossEntropySmooth, FocalLoss, BCEWithLogitsLoss, "
            "DistillationLoss, not 'FocalLos', did you mean 'FocalLoss'?");
  EXPECT_EQ(class_fault("loss={name: FocalLoss, alpha: [1, 2]}"),
            "loss.alpha has 2 numbers, model.head.num_classes is 3");
  EXPECT_EQ(class_fault("loss={name: FocalLoss, alpha: -1}"),
            "loss.alpha must be numbers from 0 up, not -1");
  EXPECT_EQ(class_fault("loss={name: FocalLoss, smoothing: 0.1}"), "unknown key 'loss.smoothing'");
  EXPECT_NE(class_fault("loss={name: DistillationLoss}").find("loss.teacher is missing"),
            std::string::npos);
  const std::string teacher =
      "loss={name: DistillationLoss, teacher: {backbone: {name: resnet50}, ";
  EXPECT_NE(
      class_fault(teacher + "head: {num_classes: 3}}}").find("loss.teacher.pretrained is missing"),
      std::string::npos);
  EXPECT_NE(class_fault(teacher + "head: {num_classes: 3}, pretrained: t, widht: 2}}")
                .find("unknown key 'loss.teacher.widht'"),
            std::string::npos);
  EXPECT_NE(class_fault(teacher + "head: {num_classes: 4}, pretrained: t}}")
                .find("has head.num_classes 4, model.head.num_classes is 3"),
            std::string::npos);
}

TEST(ClassMetric, IsOneOrAList) {
  EXPECT_EQ(read_classes().metric.names, Names{"ClsMetric"});
  EXPECT_EQ(read_classes().metric.main_indicator, "acc");
  const auto one = read_classes({"metric={name: F1Metric, average: [micro, macro]}"}).metric;
  EXPECT_EQ(one.names, Names{"F1Metric"});
  EXPECT_EQ(one.averages, (std::vector<Average>{Average::kMicro, Average::kMacro}));
  EXPECT_EQ(one.main_indicator, "f1_micro");
  const auto more =
      read_classes({"metric={name: [TopKMetric, AucMetric, ClsMetric], k: [2, 1]}"}).metric;
  EXPECT_EQ(more.names, (Names{"TopKMetric", "AucMetric", "ClsMetric"}));
  EXPECT_EQ(more.top_k, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(more.main_indicator, "top_2");
  const auto ranked =
      read_classes({"metric={name: [ClsMetric, MapMetric], main_indicator: map}"}).metric;
  EXPECT_EQ(ranked.main_indicator, "map");
}

TEST(ClassMetric, FiveOfFewClassesIsNoDefault) {
  using Counts = std::vector<int64_t>;
  MetricConfig metric;
  EXPECT_EQ(metric.top_ks(0), (Counts{1, 5})) << "unknown";
  EXPECT_EQ(metric.top_ks(6), (Counts{1, 5}));
  EXPECT_EQ(metric.top_ks(5), Counts{1});
  EXPECT_EQ(metric.top_ks(1), Counts{1});
  metric.top_k = {5, 2};
  EXPECT_EQ(metric.top_ks(5), (Counts{5, 2})) << "as given";
}

TEST(ClassMetric, FaultsAreNamed) {
  EXPECT_EQ(class_fault("metric={name: [ClsMetric, F1]}"),
            "metric.name must be one or some of ClsMetric, TopKMetric, F1Metric, AucMetric, "
            "MapMetric, not 'F1'");
  EXPECT_EQ(class_fault("metric={name: [AucMetric, AucMetric]}"),
            "metric.name has 'AucMetric' twice");
  EXPECT_EQ(class_fault("metric={name: [AucMetric], main_indicator: map}"),
            "metric.main_indicator must be one of auc, not 'map'");
  EXPECT_EQ(class_fault("metric={name: TopKMetric, k: [1, 5]}"),
            "metric.k has 5, model.head.num_classes is 3");
  EXPECT_EQ(class_fault("metric={name: F1Metric, average: micros}"),
            "metric.average must be some of macro, micro, class, not 'micros', did you mean "
            "'micro'?");
  EXPECT_NE(class_fault("metric={name: F1Metric, average: class}")
                .find("metric.main_indicator is missing"),
            std::string::npos);
  EXPECT_NE(class_fault("metric={name: ClsMetric, k: [1]}").find("unknown key 'metric.k'"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
