// Parts that a program registered, as a configuration names them.

#include "lockstep/train/config/own_parts.h"

#include <gtest/gtest.h>

#include <utility>

#include "lockstep/error.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/task_settings.h"
#include "lockstep/train/config/yaml_reader.h"
#include "lockstep/train/config/yaml_writer.h"
#include "tests/train/config/configs.h"

// This program has no libtorch, and reading needs none of what parts make.
namespace torch::optim {
class Optimizer {};
}  // namespace torch::optim

namespace lockstep {

class BatchMaker {};
class Metric {};

namespace {

int64_t read_width = 0;

NetworkMaker no_network(Section& settings) {
  int64_t width = 16;
  settings.require("depth", "is missing");
  int64_t depth = 1;
  settings.read("width", width, {1, 64}, "channels");
  settings.read("depth", depth, {1, 9}, "layers");
  read_width = width;
  return [](int64_t) { return nullptr; };
}

const NetworkPart kNet("small_net", "a network", no_network);
const NetworkPart kTwiceA("twice", "a network", no_network);
const NetworkPart kTwiceB("twice", "another", no_network);
const DatasetPart kData("points", "numbers", [](Section& settings) {
  int64_t count = 9;
  settings.read("count", count, {1, 100}, "of points");
  return [](const DatasetUse&) { return nullptr; };
});
const MetricPart kMetric("hits", "a metric",
                         [](Section&) { return [](int64_t) { return nullptr; }; });

const LossPart kLoss("own_loss", "a loss", [](Section& settings) -> LossFunction {
  int64_t weight = 2;
  settings.read("weight", weight, {1, 9}, "of text");
  return {};
});

const BackbonePart kBackbone("slim_maps", "four maps", [](Section& settings) -> BackboneMaker {
  int64_t width = 8;
  settings.read("width", width, {1, 99}, "of the first map");
  return [] { return nullptr; };
});

const OptimizerPart kOptimizer("sign_sgd", "the gradient's sign", [](Section& settings) {
  double momentum = 0.5;
  settings.read("momentum", momentum, {0, 1}, "of the sign");
  return [](const std::vector<ParameterGroup>&) { return nullptr; };
});
const SchedulePart kSchedule("halves", "half as much after each part", [](Section& settings) {
  int64_t parts = 2;
  settings.read("parts", parts, {1, 9}, "of the run");
  return [=](const SchedulePoint& point) { return point.lr / static_cast<double>(parts); };
});
const CallbackPart kCallback("counts", "counts something", [](Section& settings) {
  std::string what = "steps";
  settings.read("what", what, "is counted");
  return [] { return RecipeEvents(); };
});

constexpr auto kOwn = R"(model:
  network: {name: small_net, width: 8, depth: 2}
metric: {name: hits, main_indicator: hits}
train:
  ckpt_save_dir: out
  dataset: {type: points, count: 4}
  loader: {batch_size: 32}
eval:
  dataset: {type: points}
  loader: {batch_size: 32}
)";

Config read_own(const std::vector<std::string>& overrides = {}) {
  Node tree = parse_yaml(kOwn, "a.yaml");
  apply_overrides(tree, overrides);
  return read_config(std::move(tree));
}

std::string refusal_of(const std::string& override_item) {
  try {
    read_own({override_item});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(OwnParts, AreReadWithTheirSettings) {
  const auto config = read_own();
  ASSERT_TRUE(config.model.network);
  EXPECT_TRUE(config.model.network->make);
  EXPECT_EQ(config.model.name(), "small_net");
  EXPECT_EQ(read_width, 8);
  EXPECT_TRUE(config.train.dataset.own);
  EXPECT_TRUE(config.eval->dataset.own);
  ASSERT_EQ(config.metric.own.size(), 1U);
  EXPECT_EQ(config.metric.names, std::vector<std::string>{"hits"});
  EXPECT_EQ(config.metric.main_indicator, "hits");
  EXPECT_TRUE(std::holds_alternative<CrossEntropyConfig>(config.loss));
}

TEST(OwnParts, DefaultsAreInTheEffectiveConfiguration) {
  const auto text = write_yaml(read_own().effective);
  EXPECT_NE(text.find("count: 9"), std::string::npos) << text;
}

TEST(OwnParts, ErrorsNameWhatThereIsAndTheNearest) {
  EXPECT_EQ(refusal_of("model.network.name=smal_net"),
            "-o model.network.name=smal_net: model.network.name must be one of small_net, twice, "
            "twice, not 'smal_net', did you mean 'small_net'? --plugin FILE adds networks of one's "
            "own");
  EXPECT_EQ(refusal_of("model.network.name=transformer"),
            "-o model.network.name=transformer: model.network.name must be one of small_net, "
            "twice, twice, not 'transformer'; --plugin FILE adds networks of one's own");
  EXPECT_EQ(refusal_of("train.dataset.type=point"),
            "-o train.dataset.type=point: train.dataset.type must be one of Cifar10Dataset, "
            "Cifar100Dataset, MnistDataset, FashionMnistDataset, ImageFolderDataset, "
            "ImageListDataset, WebDataset, points, not 'point', did you mean 'points'?");
  EXPECT_EQ(refusal_of("model.network.widht=3"),
            "-o model.network.widht=3: unknown key 'model.network.widht', did you mean 'width'?");
  EXPECT_EQ(refusal_of("model.network.width=65"),
            "-o model.network.width=65: model.network.width must be a whole number from 1 to 64, "
            "not '65'");
}

TEST(OwnParts, OptimizersSchedulesAndCallbacksHaveNames) {
  const auto config = read_own({"optimizer.opt=sign_sgd", "optimizer.weight_decay=0.1",
                                "scheduler.scheduler=halves", "scheduler.parts=4",
                                "callbacks=[{name: counts}, {name: counts, what: epochs}]"});
  ASSERT_TRUE(config.optimizer.own);
  EXPECT_EQ(config.optimizer.opt, "sign_sgd");
  EXPECT_EQ(config.optimizer.weight_decay, 0.1);
  ASSERT_TRUE(config.scheduler.own);
  EXPECT_EQ(config.scheduler.own->make({.lr = 2}), 0.5);
  EXPECT_EQ(config.callbacks.size(), 2U);
  const auto text = write_yaml(config.effective);
  EXPECT_NE(text.find("momentum: 0.5"), std::string::npos) << text;
  EXPECT_NE(text.find("what: epochs"), std::string::npos) << text;
}

TEST(OwnParts, MistakesInThemNameTheNearest) {
  const auto has = [](const std::string& item, const std::string& part) {
    const auto text = refusal_of(item);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has("optimizer.opt=sign_sdg", "lamb, sign_sgd, not 'sign_sdg', did you mean 'sign_sgd'?");
  has("optimizer={opt: sign_sgd, beta1: 0.5}", "unknown key 'optimizer.beta1'");
  has("scheduler.scheduler=halfs", "reduce_on_plateau, halves, not 'halfs', did you mean 'halves'");
  has("callbacks=[{name: count}]", "callbacks[0].name must be one of counts, not 'count'");
  has("callbacks=[{name: counts, waht: 3}]",
      "unknown key 'callbacks[0].waht', did you mean 'what'");
  has("callbacks=counts", "callbacks must be a list of mappings such as {name: NAME}");
}

TEST(OwnParts, BuiltInOnesAreListedWithTheirSettingsToo) {
  const auto optimizers = list_parts("optimizers");
  EXPECT_EQ(optimizers.find("optimizers (optimizer.opt):\n  sgd: stochastic gradient descent\n"),
            0U)
      << optimizers;
  const auto lion = optimizers.substr(optimizers.find("  lion: "));
  const auto of_lion = lion.substr(0, lion.find("\n  nadam: "));
  EXPECT_NE(of_lion.find("    beta2: of moments; a number from 0 to 0.999999999; default 0.99"),
            std::string::npos)
      << of_lion;
  EXPECT_EQ(of_lion.find("nesterov"), std::string::npos) << of_lion;
  EXPECT_NE(optimizers.find("  sign_sgd: the gradient's sign\n    momentum: of the sign; "),
            std::string::npos);
  EXPECT_NE(optimizers.find("  any of these: has these settings, too\n    weight_decay: "),
            std::string::npos)
      << optimizers;
  EXPECT_NE(
      optimizers.find("    groups: parameters with values of their own; a list of mappings\n"),
      std::string::npos);
  EXPECT_EQ(of_lion.find("weight_decay"), std::string::npos) << of_lion;
  const auto schedules = list_parts("schedules");
  EXPECT_NE(schedules.find("  reduce_on_plateau: "), std::string::npos);
  EXPECT_NE(schedules.find("  halves: half as much after each part\n    parts: of the run; "),
            std::string::npos)
      << schedules;
  EXPECT_NE(list_parts("callbacks").find("  counts: counts something\n    what: is counted; "),
            std::string::npos);
}

TEST(OwnParts, ANameThatIsRegisteredTwiceIsRefused) {
  const auto error = refusal_of("model.network.name=twice");
  EXPECT_NE(error.find("'twice' is registered twice"), std::string::npos) << error;
}

/// While it lives, a part of this name is registered, too.
template <typename Made>
class Also {
 public:
  Also(Registry<Made>& registry, const std::string& name) : registry_(registry), before_(registry) {
    registry.add({name, "another one", [](Section&) { return Made(); }});
  }
  Also(const Also&) = delete;
  Also& operator=(const Also&) = delete;
  ~Also() { registry_ = before_; }

 private:
  Registry<Made>& registry_;
  Registry<Made> before_;
};

/// A registered part `name` is refused where the items of `text` select it with `key`.
template <typename Made>
void expect_taken(Registry<Made>& registry, const std::string& name, const char* text,
                  const std::string& item, const std::string& key) {
  EXPECT_EQ(fault_in(text, {item}).find(" is the name of "), std::string::npos) << item;
  const Also<Made> also(registry, name);
  EXPECT_EQ(fault_in(text, {item}), "-o " + item + ": " + key + " '" + name +
                                        "' is the name of a built-in part, too: give your own "
                                        "another name");
}

TEST(OwnParts, BackbonesMayNotHaveTheNameOfABuiltInOne) {
  expect_taken(backbones(), "det_resnet50", kDetector, "model.backbone={name: det_resnet50}",
               "model.backbone.name");
  expect_taken(backbones(), "rec_vgg7", kRecogniser, "model.backbone={name: rec_vgg7}",
               "model.backbone.name");
  expect_taken(backbones(), "resnet34", kPictures, "model.backbone={name: resnet34}",
               "model.backbone.name");
}

TEST(OwnParts, LossesMayNotHaveTheNameOfABuiltInOne) {
  expect_taken(losses(), "FocalLoss", kPictures, "loss={name: FocalLoss}", "loss.name");
  expect_taken(losses(), "CTCLoss", kPictures, "loss={name: CTCLoss}", "loss.name");
  expect_taken(losses(), "CTCLoss", kRecogniser, "loss={name: CTCLoss, max_label_len: 23}",
               "loss.name");
  expect_taken(losses(), "L1BalancedCELoss", kDetector, "loss={name: L1BalancedCELoss}",
               "loss.name");
}

TEST(OwnParts, MetricsMayNotHaveTheNameOfABuiltInOne) {
  expect_taken(metrics(), "F1Metric", kPictures, "metric={name: [ClsMetric, F1Metric]}",
               "metric.name");
  expect_taken(metrics(), "DetMetric", kDetector, "metric={name: DetMetric}", "metric.name");
}

TEST(OwnParts, DataSetsMayNotHaveTheNameOfABuiltInOne) {
  expect_taken(datasets(), "MnistDataset", kPictures,
               "train.dataset={type: MnistDataset, data_dir: d}", "train.dataset.type");
  expect_taken(datasets(), "LMDBDataset", kPictures, "train.dataset={type: LMDBDataset}",
               "train.dataset.type");
}

TEST(OwnParts, OptimizersMayNotHaveTheNameOfABuiltInOne) {
  expect_taken(optimizers(), "lion", kPictures, "optimizer={opt: lion}", "optimizer.opt");
  expect_taken(optimizers(), "AdamW", kPictures, "optimizer={opt: AdamW}", "optimizer.opt");
}

TEST(OwnParts, SchedulesMayNotHaveTheNameOfABuiltInOne) {
  expect_taken(schedules(), "one_cycle", kPictures, "scheduler={scheduler: one_cycle}",
               "scheduler.scheduler");
}

TEST(OwnParts, ADefaultIsANameToo) {
  const Also<LoggedLoss> also(losses(), "CrossEntropySmooth");
  EXPECT_NE(
      fault_in(kPictures, {}).find("loss.name 'CrossEntropySmooth' is the name of a built-in"),
      std::string::npos);
}

TEST(OwnParts, ANetworkTakesThePlaceOfTheParts) {
  const auto error = refusal_of("model.backbone.name=resnet18");
  EXPECT_NE(error.find("model.network takes its place"), std::string::npos) << error;
}

TEST(OwnParts, AreListedWithTheirSettings) {
  const auto text = list_parts("networks");
  EXPECT_EQ(text.find("networks (model.network.name):\n"
                      "  small_net: a network\n"
                      "    width: channels; a whole number from 1 to 64; default 16\n"
                      "    depth: layers; a whole number from 1 to 9; required\n"),
            0U)
      << text;
  EXPECT_NE(list_parts("datasets").find("\n  points: numbers\n    count: of points; "),
            std::string::npos);
  EXPECT_THROW(list_parts("network"), Error);
}

TEST(OwnParts, BuiltInOnesOfTasksAreListedWithTheirSettingsToo) {
  const auto has = [](const std::string& kind, const std::string& part) {
    const auto text = list_parts(kind);
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in:\n" << text;
  };
  has("losses",
      "losses (loss.name):\n"
      "  CrossEntropySmooth: cross entropy, with smoothed labels; of cls\n"
      "    smoothing: of labels; the loss of an evaluation has it, too; a number from 0 to 0.999; "
      "default 0.0\n"
      "  FocalLoss: cross entropy in which samples of a sure class count less; of cls\n"
      "    gamma: how little samples count whose class is sure; 0: cross entropy; a number from 0 "
      "to 100; default 2.0\n"
      "    alpha: weights of the classes; a number from 0 up, or a list of one for each class; "
      "default 1.0\n");
  has("losses",
      "    teacher: the section `model` of a trained network; `pretrained` has its "
      "weights; a mapping; required\n");
  has("losses", "\n  own_loss: a loss\n    weight: of text; ");
  has("metrics", "\n  F1Metric: f1, precision and recall; of cls\n    average: of f1, ");
  has("metrics", "\n  DetMetric: f-score, recall and precision of polygons; of det\n");
  has("datasets",
      "\n  WebDataset: pictures and labels in tar archives; of cls\n"
      "    dataset_root: in front of `data_dir` and `label_file`, unless they are absolute; a "
      "text\n"
      "    shards: tar archives such as train-{000..127}.tar; a text; required\n");
  has("datasets", "    data_dir: folders; a text or a list of texts; required\n");
  has("backbones", "\n  resnet18: ResNet of 18 layers; of cls\n    stem: the first layers, ");
  has("backbones",
      "    out_stages: four stages with outputs for the neck; a list of whole numbers from 0 to "
      "20; required\n"
      "    bottleneck_params.se_version: how channels are weighed; ");
}

TEST(OwnParts, EveryBuiltInOneIsListedWithALine) {
  for (const auto* kind : {"backbones", "losses", "metrics", "datasets", "transforms"}) {
    const auto text = list_parts(kind);
    for (const char* nothing : {": \n", ": ;", "  : ", "]("}) {
      EXPECT_EQ(text.find(nothing), std::string::npos) << "'" << nothing << "' in:\n" << text;
    }
  }
  for (const auto& task : all_tasks()) {
    BuiltInParts losses, metrics;
    for (const auto& loss : task.losses) losses.push_back({loss.name, loss.about});
    for (const auto& metric : task.metrics) metrics.push_back({metric.name, metric.about});
    for (const auto& [kind, parts] :
         std::vector<std::pair<const char*, BuiltInParts>>{{"backbones", task.backbones},
                                                           {"losses", losses},
                                                           {"metrics", metrics},
                                                           {"datasets", task.datasets}}) {
      for (const auto& part : parts) {
        const auto line = "\n  " + part.name + ": " + part.about + "; of " + task.name + "\n    ";
        EXPECT_NE(list_parts(kind).find(line), std::string::npos) << part.name;
      }
    }
  }
}

TEST(OwnPartsOfText, BackbonesHaveNames) {
  for (const char* text : {kDetector, kRecogniser}) {
    const auto config = read_text(text, {"model.backbone={name: slim_maps}"});
    ASSERT_TRUE(config.model.backbone.own);
    EXPECT_EQ(config.model.backbone.pretrained, "");
    EXPECT_EQ(config.model.name().find("slim_maps-"), 0u);
    const auto effective = write_yaml(config.effective);
    EXPECT_NE(effective.find("width: 8"), std::string::npos) << effective;
  }
  EXPECT_EQ(fault_in(kDetector, {"model.backbone={name: slim_map}"}),
            "-o model.backbone={name: slim_map}: model.backbone.name must be one of det_resnet18, "
            "det_resnet34, det_resnet50, det_resnet101, det_resnet152, det_mobilenet_v3, "
            "det_mobilenet_v3_enhance, slim_maps, not 'slim_map', did you mean 'slim_maps'?");
  EXPECT_EQ(fault_in(kRecogniser, {"model.backbone={name: slim_maps, wdith: 3}"}),
            "-o model.backbone={name: slim_maps, wdith: 3}: unknown key 'model.backbone.wdith', "
            "did you mean 'width'?");
  EXPECT_NE(fault_in(kDetector, {"model.backbone={name: slim_maps, pretrained: True}"})
                .find("no weights are known for this name"),
            std::string::npos);
}

TEST(OwnPartsOfText, BackbonesAreForTextAlone) {
  EXPECT_EQ(fault_in(kPictures, {"model.backbone={name: slim_maps}"}),
            "-o model.backbone={name: slim_maps}: model.backbone.name is 'slim_maps', a backbone "
            "for det and rec: a classifier takes a whole network, as model.network");
  EXPECT_NE(list_parts("backbones")
                .find("\n  slim_maps: four maps\n"
                      "    width: of the first map; a whole number from 1 to 99; default 8\n"),
            std::string::npos);
}

TEST(OwnPartsOfText, ANetworkTakesThePlaceOfBackboneNeckAndHead) {
  const std::vector<std::string> network = {"model.backbone=null", "model.neck=null",
                                            "model.network={name: small_net, depth: 2}"};
  const auto with_head = [&](const std::string& head) {
    auto overrides = network;
    overrides.push_back("model.head=" + head);
    return overrides;
  };
  const auto detector = read_text(kDetector, with_head("null"));
  ASSERT_TRUE(detector.model.network);
  EXPECT_EQ(detector.model.name(), "small_net");
  EXPECT_EQ(detector.model.num_classes(), 0);
  EXPECT_EQ(detector.model.backbone.pretrained, "");
  const auto recogniser = read_text(kRecogniser, with_head("{out_channels: 37}"));
  ASSERT_TRUE(recogniser.model.network);
  EXPECT_EQ(recogniser.model.num_classes(), 37);

  const auto has = [](const char* text, const std::vector<std::string>& overrides,
                      const std::string& words) {
    const auto fault = fault_in(text, overrides);
    EXPECT_NE(fault.find(words), std::string::npos) << fault;
  };
  has(kDetector, {"model.network={name: small_net, depth: 2}"}, "model.network takes its place");
  has(kDetector, network, "model.network takes its place, and a detector has no classes");
  has(kRecogniser, with_head("null"), "model.head.out_channels is missing: the characters of ");
  has(kRecogniser, with_head("{out_channels: 36}"), "model.head.out_channels must be 37, not 36");
  has(kRecogniser, network, "unknown key 'model.head.name'");
}

TEST(OwnPartsOfText, MetricsHaveNames) {
  const auto config = read_text(
      kDetector, {"metric={name: [hits, DetMetric], main_indicator: hits, one_to_one: True}"});
  EXPECT_EQ(config.metric.names, (std::vector<std::string>{"hits", "DetMetric"}));
  ASSERT_EQ(config.metric.own.size(), 1U);
  EXPECT_EQ(config.metric.own[0].name, "hits");
  EXPECT_TRUE(config.metric.det.one_to_one);
  EXPECT_EQ(read_text(kRecogniser, {"metric={name: [RecMetric, hits]}"}).metric.main_indicator,
            "acc");
  EXPECT_EQ(fault_in(kDetector, {"metric={name: hit}"}),
            "-o metric={name: hit}: metric.name must be one of DetMetric, hits, not 'hit', did you "
            "mean 'hits'?");
  EXPECT_EQ(fault_in(kRecogniser, {"metric={name: [RecMetric, hit]}"}),
            "-o metric={name: [RecMetric, hit]}: metric.name must be one or some of RecMetric, "
            "hits, not 'hit', did you mean 'hits'?");
  EXPECT_NE(fault_in(kDetector, {"metric={name: hits}"}).find("metric.main_indicator is missing"),
            std::string::npos);
  EXPECT_NE(fault_in(kDetector, {"metric={name: hits, main_indicator: hits, one_to_one: True}"})
                .find("unknown key 'metric.one_to_one'"),
            std::string::npos)
      << "it is DetMetric's";
  EXPECT_NE(fault_in(kDetector, {"metric={main_indicator: acc}"})
                .find("must be one of f-score, recall, precision, not 'acc'"),
            std::string::npos);
}

TEST(OwnPartsOfText, DataSetsHaveNames) {
  const std::string own = "{dataset: {type: points}, loader: {batch_size: 2}}";
  for (const char* text : {kDetector, kRecogniser}) {
    const auto config = read_text(text, {"train.dataset={type: points, count: 4}", "eval=" + own});
    EXPECT_TRUE(config.train.dataset.own);
    EXPECT_TRUE(config.eval->dataset.own);
    EXPECT_NE(write_yaml(config.effective).find("count: 9"), std::string::npos);
  }
  EXPECT_EQ(fault_in(kDetector, {"train.dataset={type: point}"}),
            "-o train.dataset={type: point}: train.dataset.type must be one of DetDataset, "
            "SynthTextDataset, points, not 'point', did you mean 'points'?");
  EXPECT_NE(fault_in(kRecogniser, {"train.dataset={count: 4}"})
                .find("train.dataset.type is missing: one of RecDataset, LMDBDataset, points"),
            std::string::npos);
  EXPECT_NE(fault_in(kDetector, {"predict={dataset: {type: points}}"})
                .find("predict.dataset.type must be one of PredictDataset, not 'points'"),
            std::string::npos);
}

TEST(OwnPartsOfText, NecksHeadsAndPostprocessingAreMindocrs) {
  EXPECT_EQ(fault_in(kDetector, {"model.neck.name=slim_maps"}),
            "-o model.neck.name=slim_maps: model.neck.name must be one of DBFPN, RSEFPN, not "
            "'slim_maps'");
  EXPECT_EQ(fault_in(kRecogniser, {"model.head.name=small_net"}),
            "-o model.head.name=small_net: model.head.name must be one of CTCHead, not "
            "'small_net'");
  EXPECT_EQ(fault_in(kDetector, {"postprocess.name=own_loss"}),
            "-o postprocess.name=own_loss: postprocess.name must be one of DBPostprocess, not "
            "'own_loss'");
}

TEST(OwnPartsOfText, LossesHaveNames) {
  for (const char* text : {kDetector, kRecogniser}) {
    const auto config = read_text(text, {"loss={name: own_loss}"});
    ASSERT_TRUE(std::holds_alternative<OwnLoss>(config.loss));
    EXPECT_EQ(std::get<OwnLoss>(config.loss).name, "own_loss");
    const auto effective = write_yaml(config.effective);
    EXPECT_NE(effective.find("weight: 2"), std::string::npos) << effective;
  }
  EXPECT_EQ(fault_in(kDetector, {"loss={name: own_los}"}),
            "-o loss={name: own_los}: loss.name must be one of DBLoss, L1BalancedCELoss, own_loss, "
            "not 'own_los', did you mean 'own_loss'?");
  EXPECT_EQ(fault_in(kRecogniser, {"loss={name: own_los}"}),
            "-o loss={name: own_los}: loss.name must be one of CTCLoss, own_loss, not 'own_los', "
            "did you mean 'own_loss'?");
  EXPECT_EQ(fault_in(kRecogniser, {"loss={name: own_loss, wieght: 3}"}),
            "-o loss={name: own_loss, wieght: 3}: unknown key 'loss.wieght', did you mean "
            "'weight'?");
}

}  // namespace
}  // namespace lockstep
