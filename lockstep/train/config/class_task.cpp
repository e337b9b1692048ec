// Classification: the sections that are its own.

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "lockstep/train/config/node.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/task_settings.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kRanksScores =
    "it ranks the scores of all samples, which no sums over them can hold";

void read_class_backbone_keys(ConfigSection& section, BackboneConfig& config) {
  section.choose(
      "stem", config.stem,
      {{"imagenet", Stem::kImageNet},
       {"cifar", Stem::kCifar},
       {"mindcv", Stem::kMindCv},
       {"mindspore", Stem::kMindSpore}},
      "*ours*: the first layers, for images of 224 or of 32 pixels a side; mindcv: those "
      "of 224 as MindCV's weights need them; mindspore: the whole ResNet of MindSpore's tutorial");
  section.read("zero_init_residual", config.zero_init_residual,
               "*ours*: each block starts as the identity");
}

BackboneConfig read_class_backbone(ConfigSection& section) {
  BackboneConfig config;
  section.require("name", "is missing");
  section.read("name", config.name, "resnet18, 34, 50, 101 or 152");
  refuse_taken(section, "name", config.name, backbones());
  if (contains(own_names(backbones()), config.name)) {
    section.fail("name", fmt::format("is '{}', a backbone for det and rec: a classifier takes a "
                                     "whole network, as model.network",
                                     config.name));
  }
  read_class_backbone_keys(section, config);
  read_weights(section, config.pretrained, "", false, "");
  if (!config.pretrained.empty()) {
    section.fail("pretrained", "cannot load a part of the model: use model.pretrained");
  }
  return config;
}

HeadSpec read_class_head(ConfigSection& section) {
  HeadSpec config;
  section.read("name", config.name, "ClsHead, of `cls`");
  section.require("num_classes", "is missing");
  section.read("num_classes", config.num_classes, {1, 1 << 24}, "classes of the data");
  return config;
}

void read_neck_and_class_head(ConfigSection& model, ModelConfig& config) {
  model.only("neck", {""}, "a classifier has none");
  config.head = read_all_of(model.section("head"), read_class_head);
}

void read_head_of_classifier(ConfigSection& model, ModelConfig& config) {
  ConfigSection head = model.section("head");
  config.head.num_classes = 0;
  head.read("num_classes", config.head.num_classes, {0, 1 << 24}, "");
  head.finish();
}

LossConfig read_cross_entropy(ConfigSection& section) {
  CrossEntropyConfig config;
  section.read("smoothing", config.smoothing, {0, 0.999},
               "of labels; the loss of an evaluation has it, too");
  section.only("aux_factor", {"0.0", "0", ""}, "no model here has auxiliary outputs");
  return config;
}

/// No number, one for all classes, or one for each.
std::vector<double> read_class_weights(ConfigSection& section, const std::string& key,
                                       const std::string& about) {
  section.record(key, "a number from 0 up, or a list of one for each class", "1.0", about);
  auto weights = section.number_or_list(key);
  for (const double weight : weights) {
    if (weight < 0) section.fail(key, fmt::format("must be numbers from 0 up, not {}", weight));
  }
  return weights;
}

LossConfig read_focal_loss(ConfigSection& section) {
  FocalConfig config;
  section.read("gamma", config.gamma, {0, 100},
               "*ours*: how little samples count whose class is sure; 0: cross entropy");
  config.alpha = read_class_weights(section, "alpha", "*ours*: weights of the classes");
  return config;
}

LossConfig read_bce_loss(ConfigSection& section) {
  BceConfig config;
  section.read("smoothing", config.smoothing, {0, 0.999},
               "*ours*: of labels, but not of targets with several classes a sample");
  config.pos_weight = read_class_weights(section, "pos_weight",
                                         "*ours*: how much a class counts where it is present");
  section.read("sum_classes", config.sum_classes,
               "*ours*: the sum over classes, not their mean; of samples it is the mean");
  return config;
}

LossConfig read_distillation(ConfigSection& section) {
  DistillationConfig config;
  constexpr auto kWhat = "the section `model` of a trained network; `pretrained` has its weights";
  section.require("teacher", std::string("is missing: ") + kWhat);
  section.record("teacher", "a mapping", "", std::string("*ours*: ") + kWhat);
  section.read("temperature", config.temperature, {0.01, 1000},
               "*ours*: divides the scores of both networks");
  section.read("weight", config.weight, {0, 1},
               "*ours*: of the teacher; the labels have the rest, and an evaluation only them");
  section.read("smoothing", config.smoothing, {0, 0.999}, "*ours*: of labels");
  Node* teacher = section.any("teacher");
  if (teacher == nullptr) {  // keys are being listed
    config.teacher.head.num_classes = 0;
    return config;
  }
  // Its keys are those of `model`, and are listed there.
  const ConfigSection own(*teacher, section.name_of("teacher"));
  config.teacher = read_model(own);
  if (config.teacher.type != ModelType::kCls || config.teacher.task) {
    own.fail("type", "must be cls");
  }
  if (config.teacher.resume) own.fail("resume", "must be False: a teacher is not trained");
  if (config.teacher.pretrained.empty()) {
    own.fail("pretrained", "is missing: the file, or the checkpoint, with the teacher's weights");
  }
  return config;
}

PostprocessConfig read_class_postprocess(ConfigSection& section) {
  std::string name = "ClsPostprocess";
  section.choose("name", name, {name}, "");
  ClassNames classes;
  section.read("label_list", classes.label_list,
               "a name for each class, for `predict`; else the names in `classes.txt` beside the "
               "weights, else those of the data, else numbers");
  return classes;
}

/// Weights of classes in `key` of the loss are as many as the network has classes.
void check_class_weights(ConfigSection& root, const std::string& key,
                         const std::vector<double>& weights, int64_t classes) {
  if (weights.size() < 2 || classes == 0 || std::ssize(weights) == classes) return;
  root.section("loss").fail(
      key, fmt::format("has {} numbers, model.head.num_classes is {}", weights.size(), classes));
}

void check_class_loss(const Config& config, ConfigSection& root) {
  const int64_t classes = config.model.head.num_classes;
  if (const auto* focal = std::get_if<FocalConfig>(&config.loss)) {
    check_class_weights(root, "alpha", focal->alpha, classes);
  } else if (const auto* bce = std::get_if<BceConfig>(&config.loss)) {
    check_class_weights(root, "pos_weight", bce->pos_weight, classes);
    if (config.train.dataset.mixing.any() && bce->smoothing > 0) {
      root.section("loss").fail("smoothing", "must be 0 with MixUp or CutMix, which smooth too");
    }
  } else if (const auto* distillation = std::get_if<DistillationConfig>(&config.loss)) {
    const int64_t of_teacher = distillation->teacher.head.num_classes;
    if (of_teacher == classes || of_teacher == 0 || classes == 0) return;
    root.section("loss").fail(
        "teacher",
        fmt::format("has head.num_classes {}, model.head.num_classes is {}", of_teacher, classes));
  }
}

void check_class_metric(const Config& config, ConfigSection& root) {
  const int64_t classes = config.model.head.num_classes;
  const auto& metric = config.metric;
  if (metric.main_indicator == "top_5" && classes <= 5 && metric.names.front() == "ClsMetric") {
    root.fail("metric", "has main_indicator top_5, which needs more than 5 classes");
  }
  for (const auto& name : metric.names) {
    const bool by_class = name == "F1Metric" || name == "AucMetric" || name == "MapMetric";
    if (!by_class || classes > 0) continue;
    root.section("metric").fail("name",
                                fmt::format("has {}, which needs model.head.num_classes", name));
  }
  for (const int64_t k : metric.top_k) {
    if (k <= classes || classes == 0) continue;
    root.section("metric").fail("k",
                                fmt::format("has {}, model.head.num_classes is {}", k, classes));
  }
}

/// In `eval` the folder of the data is that of `train` unless given.
void complete_class_data(Config& config, ConfigSection& root) {
  if (!config.eval || config.eval->dataset.own) return;
  auto& dirs = config.eval->dataset.data_dirs;
  if (!dirs[0].empty()) return;
  dirs = config.train.dataset.data_dirs;
  if (config.train.dataset.own || config.train.dataset.type == "WebDataset") {
    root.section("eval").section("dataset").missing("data_dir", "is missing: a folder");
  }
}

void complete_class_task(Config& config, ConfigSection& root) {
  complete_class_data(config, root);
  check_class_loss(config, root);
  check_class_metric(config, root);
}

}  // namespace

std::string class_loss_name(const LossConfig& loss) {
  if (std::holds_alternative<CrossEntropyConfig>(loss)) return "CrossEntropySmooth";
  if (std::holds_alternative<FocalConfig>(loss)) return "FocalLoss";
  if (std::holds_alternative<BceConfig>(loss)) return "BCEWithLogitsLoss";
  return std::holds_alternative<DistillationConfig>(loss) ? "DistillationLoss" : "";
}

LossConfig read_loss(ConfigSection& section, const TaskSettings& task) {
  // Those of MindOCR that are not built in.
  static const std::vector<std::string> others = {"SARLoss",          "AttentionLoss",
                                                  "VisionLANLoss",    "PSEDiceLoss",
                                                  "EASTLoss",         "MasterLoss",
                                                  "ABINetLoss",       "TableMasterLoss",
                                                  "CrossEntropyLoss", "VQASerTokenLayoutLMLoss"};
  std::string name = task.losses.front().name;
  const auto own =
      read_part(section, "name", name, names_of(task.losses), losses(), task.about_losses, others);
  return own ? *own : find_named(task.losses, name)->read(section);
}

TaskSettings class_task() {
  return {
      .name = "cls",
      .about = "classification, of pictures or anything else with classes",
      .backbones = {{"resnet18", "ResNet of 18 layers"},
                    {"resnet34", "ResNet of 34 layers"},
                    {"resnet50", "ResNet of 50 layers"},
                    {"resnet101", "ResNet of 101 layers"},
                    {"resnet152", "ResNet of 152 layers"}},
      .losses = {{"CrossEntropySmooth", "cross entropy, with smoothed labels", read_cross_entropy},
                 {"FocalLoss", "cross entropy in which samples of a sure class count less",
                  read_focal_loss},
                 {"BCEWithLogitsLoss", "binary cross entropy of each class by itself",
                  read_bce_loss},
                 {"DistillationLoss", "follows the labels, and the scores of a trained network",
                  read_distillation,
                  "its teacher needs the batch's inputs, which a LossFunction does not get"}},
      .about_losses = "*ours*, but for CrossEntropySmooth",
      .metrics = {{"ClsMetric", "acc, and top_5 with more than 5 classes"},
                  {"TopKMetric", "top_1, top_5, ...: the class is among the k best", read_top_k},
                  {"F1Metric", "f1, precision and recall", read_averages},
                  {"AucMetric", "auc: area under the ROC curve, the mean of classes", nullptr,
                   kRanksScores},
                  {"MapMetric", "map: average precision, the mean of classes", nullptr,
                   kRanksScores}},
      .datasets = {{"Cifar10Dataset", "CIFAR-10 in its binary files"},
                   {"Cifar100Dataset", "CIFAR-100 in its binary files"},
                   {"MnistDataset", "MNIST's handwritten digits"},
                   {"FashionMnistDataset", "Fashion-MNIST's clothes, in files as MNIST's"},
                   {"ImageFolderDataset", "pictures in files, a sub-folder for each class"},
                   {"ImageListDataset", "pictures in files, with labels in a list"},
                   {"WebDataset", "pictures and labels in tar archives"}},
      .default_dataset = "Cifar10Dataset",
      .exact_decay = true,
      .weights_format = "none",
      .read_backbone = read_class_backbone,
      .read_backbone_keys = read_class_backbone_keys,
      .read_neck_and_head = read_neck_and_class_head,
      .read_head_of_network = read_head_of_classifier,
      .read_metric = read_class_metric,
      .read_postprocess = read_class_postprocess,
      .read_dataset = read_class_dataset,
      .complete = complete_class_task};
}

std::string held_out_note(const Config& config) {
  if (config.model.type != ModelType::kCls || !config.eval) return "";
  const DatasetConfig& train = config.train.dataset;
  const DatasetConfig& eval = config.eval->dataset;
  const bool takes_parts = train.type == "ImageFolderDataset" && eval.type == train.type &&
                           train.usage == "train" && eval.usage == "test";
  if (!takes_parts || train.held_out == eval.held_out) return "";
  std::error_code ignored;
  const auto of_train = std::filesystem::weakly_canonical(train.data_dirs[0], ignored);
  if (of_train != std::filesystem::weakly_canonical(eval.data_dirs[0], ignored)) return "";
  return fmt::format(
      "eval.dataset.held_out is {} and train.dataset.held_out {}, of one folder: "
      "pictures of training are evaluated, too",
      eval.held_out, train.held_out);
}

}  // namespace lockstep::inline internal
