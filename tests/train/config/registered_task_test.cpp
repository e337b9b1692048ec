// Tasks that a program registered, as `model.type` names them.

#include "lockstep/train/config/registered_task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/recipe.h"
#include "lockstep/train/config/own_parts.h"
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

const DatasetPart kPoints("points", "numbers", [](Section& settings) {
  int64_t count = 9;
  settings.read("count", count, {1, 100}, "of points");
  return [](const DatasetUse&) { return nullptr; };
});
const LossPart kOwnLoss("own_loss", "a loss", [](Section&) { return LossFunction(); });
const MetricPart kHits("hits", "a metric",
                       [](Section&) { return [](int64_t) { return nullptr; }; });

/// With data, losses, optimizers and a metric of its own.
Recipe whole_recipe() {
  Recipe recipe;
  recipe.network = [](int64_t) { return nullptr; };
  recipe.data = [](const DatasetUse&) { return nullptr; };
  recipe.optimizers = {{"layer", [](torch::nn::Module&) { return nullptr; }}};
  recipe.training_step = [](TrainingStep&) {};
  recipe.metric = [](int64_t) { return nullptr; };
  recipe.main_indicator = "nearness";
  recipe.settings = {"scheduler.num_epochs=7", "scheduler.lr=0.5", "train.loader.batch_size=16"};
  return recipe;
}

const TaskPart kRing("ring", "points of a ring", [](Section& settings) {
  int64_t width = 64;
  settings.read("width", width, {1, 96}, "of the layers");
  Recipe recipe = whole_recipe();
  recipe.settings.push_back("system.seed=" + std::to_string(width));
  return recipe;
});
const TaskPart kOpen("open_task", "a network alone", [](Section&) {
  Recipe recipe;
  recipe.network = [](int64_t) { return nullptr; };
  recipe.num_classes = 3;
  return recipe;
});
const TaskPart kEmpty("no_network", "nothing", [](Section&) { return Recipe(); });
const TaskPart kMisspelt("misspelt", "a misspelt key", [](Section&) {
  Recipe recipe = whole_recipe();
  recipe.settings = {"train.loader.batchsize=3"};
  return recipe;
});
const TaskPart kSameA("twice", "a task", [](Section&) { return whole_recipe(); });
const TaskPart kSameB("twice", "another", [](Section&) { return whole_recipe(); });
const TaskPart kTaken("rec", "not MindOCR's", [](Section&) { return whole_recipe(); });
// MindOCR has a task of this name, and a key that is refused elsewhere.
const TaskPart kTable("table", "cells", [](Section& settings) {
  std::string transform = "crop";
  settings.read("transform", transform, "of the pictures");
  Recipe recipe;
  recipe.network = [](int64_t) { return nullptr; };
  return recipe;
});

constexpr auto kRingFile = "model: {type: ring, width: 8}\n";

/// The error of kRingFile with this -o.
std::string refusal(const std::string& item) {
  const auto text = fault_in(kRingFile, {item});
  const auto start = "-o " + item + ": ";
  EXPECT_EQ(text.find(start), 0U) << text;
  return text.substr(std::min(start.size(), text.size()));
}

TEST(RegisteredTask, ItsNameAloneIsAConfiguration) {
  const auto config = read_text("model: {type: ring}\n");
  ASSERT_TRUE(config.model.task);
  EXPECT_EQ(config.model.task->name, "ring");
  EXPECT_EQ(config.model.name(), "ring");
  EXPECT_TRUE(config.model.network->make);
  EXPECT_EQ(config.train.ckpt_save_dir, "out/ring");
  EXPECT_EQ(config.train.dataset.own->name, "ring");
  EXPECT_TRUE(config.eval->dataset.own);
  EXPECT_EQ(config.eval->loader.batch_size, 32);
  EXPECT_EQ(config.metric.names, std::vector<std::string>{"ring"});
  EXPECT_EQ(config.metric.main_indicator, "nearness");
  EXPECT_EQ(config.system.seed, 64);
}

TEST(RegisteredTask, ItsSettingsAreDefaultsOfTheFile) {
  const auto config = read_text(std::string(kRingFile) + "scheduler: {lr: 0.25}\n",
                                {"train.loader.batch_size=4", "metric.main_indicator=other"});
  EXPECT_EQ(config.system.seed, 8);  // by model.width
  EXPECT_EQ(config.scheduler.num_epochs, 7);
  EXPECT_EQ(config.scheduler.lr, 0.25);
  EXPECT_EQ(config.train.loader.batch_size, 4);
  EXPECT_EQ(config.metric.main_indicator, "other");
}

TEST(RegisteredTask, TheEffectiveConfigurationIsOneToo) {
  for (const std::string file :
       {kRingFile, "model: {type: open_task}\ntrain: {dataset: {type: points}}\n"}) {
    const auto text = write_yaml(read_text(file).effective);
    EXPECT_EQ(write_yaml(read_text(text).effective), text);
  }
  EXPECT_NE(write_yaml(read_text("model: {type: ring}\n").effective).find("width: 64"),
            std::string::npos);
}

TEST(RegisteredTask, MistakesNameTheNearest) {
  EXPECT_EQ(refusal("model.type=rnig"),
            "model.type must be one of cls, det, rec, ring, open_task, no_network, misspelt, "
            "twice, twice, rec, table, not 'rnig', did you mean 'ring'? --plugin FILE adds tasks "
            "of one's own");
  EXPECT_EQ(refusal("model.type=transformer"),
            "model.type must be one of cls, det, rec, ring, open_task, no_network, misspelt, "
            "twice, twice, rec, table, not 'transformer'; --plugin FILE adds tasks of one's own");
  EXPECT_EQ(refusal("model.type=kie").find("model.type cannot be 'kie', which is not built in"),
            0U);
  EXPECT_EQ(refusal("model.widht=3"), "unknown key 'model.widht', did you mean 'width'?");
  EXPECT_EQ(refusal("model.width=97"), "model.width must be a whole number from 1 to 96, not '97'");
  EXPECT_EQ(refusal("model.type=twice").find("model.type 'twice' is registered twice"), 0U);
  EXPECT_EQ(refusal("model.type=rec").find("model.type 'rec' is the name of a built-in part, too"),
            0U)
      << refusal("model.type=rec");
  EXPECT_EQ(refusal("model.type=no_network"), "model.type no_network: the recipe has no network");
  EXPECT_EQ(fault_in("model: {type: misspelt}\n", {}),
            "Recipe::settings of misspelt: train.loader.batchsize=3: unknown key "
            "'train.loader.batchsize', did you mean 'batch_size'?");
}

TEST(RegisteredTask, SectionsThatItReplacesAreRefused) {
  const auto no_effect = [](const std::string& item, const std::string& what) {
    const auto key = item.substr(0, item.find('='));
    EXPECT_EQ(refusal(item), key + " would have no effect: model.type ring has " + what);
  };
  no_effect("train.dataset.type=points", "data of its own");
  no_effect("eval.dataset.count=3", "data of its own");
  no_effect("loss.name=own_loss", "a loss of its own");
  no_effect("metric.name=hits", "a metric of its own");
  no_effect("optimizer.opt=sgd", "an optimizer of its own");
  no_effect("postprocess.label_list=[a, b]", "no classes (Recipe::num_classes)");
  no_effect("predict.top_k=1", "no classes (Recipe::num_classes)");
  EXPECT_EQ(fault_in(std::string(kRingFile) + "loss: {smoothing: 0.1}\n", {}),
            "t.yaml:2: loss.smoothing would have no effect: model.type ring has a loss of its own");
  EXPECT_EQ(refusal("model.backbone={name: resnet18}"), "unknown key 'model.backbone'");
  EXPECT_EQ(refusal("model.network={name: small_net}"), "unknown key 'model.network'");
  const auto config =
      read_text(kRingFile, {"optimizer.groups=[{params: layer, frozen: True}]", "loss=null"});
  EXPECT_EQ(config.optimizer.groups.size(), 1U);
}

TEST(RegisteredTask, WhatItLeavesOpenIsReadAsForAClassifier) {
  const std::string file = "model: {type: open_task}\n";
  EXPECT_EQ(fault_in(file, {}).find("train.dataset.type is missing: one of Cifar10Dataset, "),
            std::string("t.yaml:1: ").size())
      << fault_in(file, {});
  const auto config =
      read_text(file, {"train.dataset={type: points, count: 4}", "loss={name: own_loss}",
                       "metric={name: [ClsMetric, hits]}", "optimizer={opt: sgd, momentum: 0.5}",
                       "postprocess.label_list=[a, b, c]"});
  EXPECT_EQ(config.model.head.num_classes, 3);
  EXPECT_EQ(config.train.dataset.own->name, "points");
  EXPECT_FALSE(config.eval);
  EXPECT_EQ(std::get<OwnLoss>(config.loss).name, "own_loss");
  EXPECT_EQ(config.metric.main_indicator, "acc");
  EXPECT_EQ(config.optimizer.opt, "sgd");
}

TEST(RegisteredTask, MayHaveANameAndAKeyThatMindOcrHas) {
  const auto config = read_text(
      "model: {type: table}\ntrain: {dataset: {type: points}}\neval: {dataset: {type: points}}\n");
  EXPECT_EQ(config.model.task->name, "table");
  EXPECT_EQ(config.eval->loader.batch_size, 32) << "though the recipe has no data";
  EXPECT_NE(write_yaml(config.effective).find("transform: crop"), std::string::npos);
}

/// The configuration of kOpen's recipe with these settings.
Config read_with(const std::vector<std::string>& settings) {
  Recipe recipe;
  recipe.name = "given";
  recipe.network = [](int64_t) { return nullptr; };
  recipe.num_classes = 3;
  recipe.settings = settings;
  tasks().put({recipe.name, "of this test", [recipe](Section&) { return recipe; }});
  return read_text("model: {type: given}\n");
}

TEST(RegisteredTask, AWholeSectionOfItsSettingsLeavesTheDefaults) {
  auto config = read_with({"train={dataset: {type: points}}", "eval={dataset: {type: points}}"});
  EXPECT_EQ(config.train.ckpt_save_dir, "out/given");
  EXPECT_EQ(config.train.loader.batch_size, 32);
  EXPECT_EQ(config.eval->loader.batch_size, 32);
  config = read_with({"train={dataset: {type: points}, loader: {batch_size: 4}}",
                      "eval={dataset: {type: points}}", "eval.loader={batch_size: 5}"});
  EXPECT_EQ(config.train.ckpt_save_dir, "out/given");
  EXPECT_EQ(config.train.loader.batch_size, 4);
  EXPECT_EQ(config.eval->loader.batch_size, 5);
  config = read_with({"train={dataset: {type: points}}", "eval=null", "metric={name: F1Metric}"});
  EXPECT_FALSE(config.eval);
  EXPECT_NE(config.metric.main_indicator, "acc") << "F1Metric has none";
}

TEST(RegisteredTask, NoneIsATeacher) {
  const auto text = fault_in(
      kPictures, {"loss={name: DistillationLoss, teacher: {type: ring, pretrained: a.ckpt}}"});
  EXPECT_NE(text.find("loss.teacher.type must be cls"), std::string::npos) << text;
}

TEST(RegisteredTask, AreListedBesideTheBuiltInOnes) {
  const auto text = list_parts("tasks");
  EXPECT_EQ(text.find("tasks (model.type):\n"
                      "  cls: classification, of pictures or anything else with classes\n"
                      "  det: detection of text in pictures\n"
                      "  rec: recognition of text: pictures of a word or a line\n"
                      "  ring: points of a ring\n"
                      "    width: of the layers; a whole number from 1 to 96; default 64\n"
                      "  open_task: a network alone\n"),
            0U)
      << text;
}

}  // namespace
}  // namespace lockstep
