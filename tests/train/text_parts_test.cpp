// Registered parts of a detector and a recogniser, as a configuration names them.

#include <gtest/gtest.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/utils.h>

#include <filesystem>
#include <functional>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/data/pixel_form.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/task/task.h"
#include "lockstep/train/task_parts.h"
#include "lockstep/weights.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/config/configs.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Four maps; the first has one place for each `first` x `first` pixels.
class FourMaps final : public Backbone {
 public:
  explicit FourMaps(int64_t first, std::vector<int64_t> channels)
      : channels_(std::move(channels)), convs_(register_module("convs", torch::nn::ModuleList())) {
    int64_t in = 3;
    for (const int64_t stride : {first, int64_t{2}, int64_t{2}, int64_t{2}}) {
      const int64_t out = in == 3 ? 4 : 2 * in;
      convs_->push_back(
          torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, stride).stride(stride)));
      in = out;
    }
  }
  Tensors features(at::Tensor x) override {
    Tensors maps;
    for (const auto& conv : *convs_) maps.push_back(x = conv->as<torch::nn::Conv2d>()->forward(x));
    return maps;
  }
  std::vector<int64_t> feature_channels() const override { return channels_; }

 private:
  std::vector<int64_t> channels_;
  torch::nn::ModuleList convs_;
};

/// A column of each four columns of an image of 32 rows.
class Columns final : public Backbone {
 public:
  Tensors features(at::Tensor input) override { return {conv_->forward(input)}; }
  std::vector<int64_t> feature_channels() const override { return {8}; }

 private:
  torch::nn::Conv2d conv_ = register_module(
      "conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, {32, 4}).stride({32, 4})));
};

const BackbonePart kFourMaps("four_maps", "four maps", [](Section& settings) -> BackboneMaker {
  int64_t first = 4;
  std::vector<int64_t> channels = {4, 8, 16, 32};
  settings.read("first", first, {1, 32}, "pixels of a place of the first map");
  settings.read("channels", channels, {0, 64}, "of its maps, by feature_channels()");
  return [=] { return std::make_shared<FourMaps>(first, channels); };
});
const BackbonePart kColumns("columns", "one map", [](Section&) -> BackboneMaker {
  return [] { return std::make_shared<Columns>(); };
});
const BackbonePart kNone("no_backbone", "nothing",
                         [](Section&) -> BackboneMaker { return [] { return nullptr; }; });

/// Sums of a number of each picture.
class PictureSums final : public Metric {
 public:
  using Number = std::function<double(const TextPicture&)>;
  PictureSums(std::string figure, Number number, bool lower = false)
      : figure_(std::move(figure)), number_(std::move(number)), lower_(lower) {}

  std::vector<std::string> metric_names() const override { return {figure_}; }
  std::vector<std::string> lower_is_better() const override {
    return lower_ ? metric_names() : std::vector<std::string>();
  }
  size_t num_sums() const override { return 1; }
  std::vector<double> sums(const Tensors&, const Batch& batch) override {
    double sum = 0;
    for (const auto& picture : text_pictures(batch)) sum += number_(picture);
    return {sum};
  }
  EvalResult result(std::span<const double> sums) override {
    EvalResult result;
    result.metrics = {{figure_, sums[0]}};
    return result;
  }

 private:
  std::string figure_;
  Number number_;
  bool lower_;
};

const MetricPart kBoxes("boxes", "what was found", [](Section& settings) -> MetricMaker {
  std::string figure = "boxes";
  settings.read("figure", figure, "its name");
  bool lower = false;
  settings.read("lower", lower, "less of it is better");
  return [=](int64_t) {
    const auto found = [](const TextPicture& picture) {
      return static_cast<double>(picture.found.size());
    };
    return std::make_unique<PictureSums>(figure, found, lower);
  };
});
const MetricPart kSure("sure", "confidence, and the number of classes", [](Section&) {
  return [](int64_t classes) {
    return std::make_unique<PictureSums>("sure", [=](const TextPicture& picture) {
      return picture.read == picture.label ? static_cast<double>(classes) + picture.confidence : 0;
    });
  };
});

/// A map of 128 x 128 with text at the upper left.
at::Tensor map_with_text() {
  const auto map = torch::zeros({1, 1, 128, 128});
  map.narrow(2, 26, 12).narrow(3, 26, 48).fill_(0.9);
  return map;
}

Batch batch_of_one(TextPicture picture) {
  Batch batch;
  batch.valid = 1;
  set_text_pictures(batch, {std::move(picture)});
  return batch;
}

TEST(TextParts, AMetricGetsTheTruthAndWhatWasFound) {
  const auto task =
      make_task(read_text(kDetector, {"metric={name: [boxes, DetMetric], main_indicator: boxes}"}));
  const TextPolygon found{{{20, 20}, {80, 20}, {80, 44}, {20, 44}}};
  const TextPolygon missed{{{20, 80}, {100, 80}, {100, 104}, {20, 104}}};
  const auto batch = batch_of_one({.truth = {found, missed}});
  const auto result = task->result(task->sums({map_with_text()}, batch));
  EXPECT_EQ(result.samples, 1);
  EXPECT_EQ(result.metrics,
            (std::vector<std::pair<std::string, double>>{
                {"boxes", 1}, {"recall", 0.5}, {"precision", 1}, {"f-score", 2.0 / 3}}));
}

TEST(TextParts, AMetricNamesItsFiguresOfWhichLessIsBetter) {
  const std::string metric = "metric={name: [DetMetric, boxes], lower: ";
  const auto errors = make_task(read_text(kDetector, {metric + "True}"}));
  EXPECT_FALSE(is_higher_better(*errors, "boxes"));
  EXPECT_TRUE(is_higher_better(*errors, "f-score"));
  EXPECT_FALSE(is_higher_better(*errors, "loss"));
  EXPECT_TRUE(is_higher_better(*make_task(read_text(kDetector, {metric + "False}"})), "boxes"));
}

TEST(TextParts, AMetricGetsTheLabelAndWhatWasRead) {
  const auto task =
      make_task(read_text(kRecogniser, {"metric={name: sure, main_indicator: sure}"}));
  const auto frames = torch::zeros({1, 2, 37});
  frames[0][0][10] = 0.75;  // an 'a'
  frames[0][1][36] = 1;     // the blank
  const auto figure = [&](const char* label) {
    const auto batch = batch_of_one({.label = label});
    return task->result(task->sums({frames}, batch)).metric("sure");
  };
  EXPECT_EQ(figure("a"), 37.75);
  EXPECT_EQ(figure("b"), 0);
}

TEST(TextParts, TwoMetricsWithOneFigureAreRefused) {
  const auto config = read_text(kDetector, {"metric={name: [DetMetric, boxes], figure: recall}"});
  EXPECT_STREQ(error_of([&] { make_task(config); }).what(),
               "metric.name: two metrics have a figure 'recall'");
}

TEST(TextParts, AnEvaluationNeedsTheTruth) {
  const auto task = make_task(read_text(kDetector));
  Batch batch;
  batch.valid = 2;
  EXPECT_STREQ(error_of([&] {
                 task->sums({torch::zeros({2, 1, 8, 8})}, batch);
               }).what(),
               "a batch of 2 samples to evaluate has 0 text pictures: a data set gives them by "
               "set_text_pictures()");
}

/// Grey images; a label for each.
class Greys final : public BatchMaker {
 public:
  explicit Greys(bool training) : training_(training) {}
  int64_t size() const override { return training_ ? 6 : 3; }
  Batch make(const BatchRows& rows) const override {
    const int64_t count = std::ssize(rows.samples);
    Batch batch{torch::full({count, 3, 32, 64}, 0.5), {}, rows.num_counted};
    if (training_) batch.targets = {torch::full({count, 4}, 36, torch::kInt)};
    if (!training_) set_text_pictures(batch, std::vector<TextPicture>(rows.samples.size()));
    return batch;
  }

 private:
  bool training_;
};

const DatasetPart kGreys("greys", "grey images", [](Section&) {
  return [](const DatasetUse& use) { return std::make_unique<const Greys>(use.training); };
});

TEST(TextParts, ADataSetMakesTheBatches) {
  const auto config = read_text(
      kRecogniser,
      {"train.dataset={type: greys}", "eval={dataset: {type: greys}, loader: {batch_size: 2}}"});
  const auto& parts = task_parts(config);
  const int64_t first = 0;
  for (const bool training : {true, false}) {
    DataParts data;
    const auto maker = parts.make_batches(config, training, PixelForm::kFloats, data);
    EXPECT_EQ(data.samples, training ? 6 : 3);
    const auto batch = maker->make({0, {&first, 1}, 1});
    EXPECT_EQ(batch.targets.size(), training ? 1u : 0u);
    if (!training) {
      EXPECT_EQ(text_pictures(batch).size(), 1u);
    }
  }
  const auto checked = parts.check_data(config);
  EXPECT_EQ(checked.samples, 6);
  EXPECT_EQ(checked.image_elements, 3 * 32 * 64);
  EXPECT_EQ(checked.note, "");
}

/// A folder with pictures of text, and lists of them for a detector and a recogniser.
class TextFolder {
 public:
  TextFolder() {
    std::string scenes, words;
    for (int i = 0; i < 4; ++i) {
      const std::string name = std::to_string(i) + ".png";
      cv::Mat picture(90 + 10 * i, 120, CV_8UC3);
      cv::RNG(static_cast<uint64_t>(i) + 1).fill(picture, cv::RNG::UNIFORM, 0, 256);
      cv::imwrite((folder_ / name).string(), picture);
      scenes += name +
                "\t[{\"transcription\": \"a\", \"points\": [[20, 20], [90, 20], [90, 60], [20, "
                "60]]}]\n";
      words += name + "\tword" + std::to_string(i) + "\n";
    }
    write_file_atomically(folder_ / "scenes.txt", scenes);
    write_file_atomically(folder_ / "words.txt", words);
  }

  /// A recipe of configs/, with this folder's pictures in both sections.
  Config config(const std::string& recipe, bool detects) const {
    std::vector<std::string> overrides = {"model.backbone.pretrained=False"};
    for (const std::string section : {"train", "eval"}) {
      const std::string dataset = section + ".dataset.";
      overrides.push_back(dataset + "type=" + (detects ? "DetDataset" : "RecDataset"));
      overrides.push_back(dataset + "dataset_root=" + folder_.path().string());
      overrides.push_back(dataset + "data_dir=.");
      overrides.push_back(dataset + "label_file=" + (detects ? "scenes.txt" : "words.txt"));
    }
    return load_config(fs::path(env_or("LOCKSTEP_SOURCE_DIR", ".")) / "configs" / recipe,
                       overrides);
  }

 private:
  TempFolder folder_;
};

void expect_bytes_of_the_same_numbers(const Config& config, bool training, bool as_bytes = true) {
  DataParts unused;
  const std::vector<int64_t> order = {2, 0};
  const auto made = [&](PixelForm form) {
    return task_parts(config).make_batches(config, training, form, unused)->make({3, order, 2});
  };
  const Batch floats = made(PixelForm::kFloats), other = made(PixelForm::kBytes);
  EXPECT_EQ(floats.images.scalar_type(), at::kFloat);
  EXPECT_EQ(other.images.scalar_type(), as_bytes ? at::kByte : at::kFloat);
  const auto numbers = other.inputs_on(at::kCPU).front();
  ASSERT_EQ(numbers.sizes(), floats.images.sizes());
  // Bits: -0 and 0 differ.
  EXPECT_TRUE(at::equal(numbers.view(at::kInt), floats.images.view(at::kInt)));
  EXPECT_EQ(other.faults, floats.faults);
  EXPECT_EQ(other.targets.size(), floats.targets.size());
  for (size_t i = 0; i < floats.targets.size(); ++i) {
    EXPECT_TRUE(at::equal(other.targets[i], floats.targets[i])) << i;
  }
}

TEST(TextParts, MindocrsListsGiveBytesOfTheSameNumbers) {
  const TextFolder folder;
  for (const std::string recipe : {"det/dbnet/db_r50_icdar15.yaml", "det/dbnet/db_r18_mlt2017.yaml",
                                   "det/dbnet/db_mobilenetv3_icdar15.yaml"}) {
    SCOPED_TRACE(recipe);
    const auto config = folder.config(recipe, true);
    expect_bytes_of_the_same_numbers(config, true);
    expect_bytes_of_the_same_numbers(config, false);
  }
  for (const std::string recipe : {"rec/crnn/crnn_resnet34.yaml", "rec/crnn/crnn_vgg7.yaml"}) {
    SCOPED_TRACE(recipe);
    const auto config = folder.config(recipe, false);
    expect_bytes_of_the_same_numbers(config, true);
    expect_bytes_of_the_same_numbers(config, false);
  }
}

TEST(TextParts, ImagesAloneAreCountedAsBytesForACudaDevice) {
  const TextFolder folder;
  const auto checked = [](const Config& config) { return task_parts(config).check_data(config); };
  const auto detects = checked(folder.config("det/dbnet/db_r50_icdar15.yaml", true));
  ASSERT_GT(detects.image_elements, 3 * 640 * 640);
  EXPECT_EQ(detects.byte_elements, 3 * 640 * 640);
  EXPECT_EQ(detects.sample_bytes(at::kCPU), 4 * detects.image_elements);
  EXPECT_EQ(detects.sample_bytes(at::kCUDA), 4 * detects.image_elements - 3 * 3 * 640 * 640);
  const auto reads = checked(folder.config("rec/crnn/crnn_vgg7.yaml", false));
  EXPECT_EQ(reads.sample_bytes(at::kCPU), 4 * 3 * 32 * 100);
  EXPECT_EQ(reads.sample_bytes(at::kCUDA), 3 * 32 * 100);
}

TEST(TextParts, AListThatPadsBehindItsArithmeticGivesFloats) {
  const TextFolder folder;
  auto config = folder.config("rec/crnn/crnn_vgg7.yaml", false);
  auto& steps = config.train.dataset.pipeline;
  steps.resize(2);  // DecodeImage, RecCTCLabelEncode
  steps.emplace_back(ocr::RecResizeNormForInfer{.padding = true, .norm_before_pad = true});
  expect_bytes_of_the_same_numbers(config, true, false);
}

std::shared_ptr<Model> detector_on(const std::string& backbone, const char* neck = "DBFPN") {
  const auto config =
      read_text(kDetector, {"model.backbone={name: " + backbone + "}",
                            std::string("model.neck={out_channels: 16, name: ") + neck + "}"});
  return make_model(config.model, 1);
}

TEST(TextParts, ABackboneGoesWithMindocrsNecksAndHeads) {
  for (const char* neck : {"DBFPN", "RSEFPN"}) {
    const auto model = detector_on("four_maps", neck);
    const auto tensors = module_tensors(*model);
    EXPECT_TRUE(tensors.contains("backbone.convs.3.weight"));
    const auto again = module_tensors(*detector_on("four_maps", neck));  // another rank
    for (const auto& [name, tensor] : tensors) {
      EXPECT_TRUE(at::equal(tensor, again.at(name))) << name;
    }
    const auto images = torch::rand({2, 3, 64, 96});
    EXPECT_EQ(model->forward(images).sizes(), (std::vector<int64_t>{2, 3, 64, 96})) << neck;
    model->eval();
    EXPECT_EQ(model->forward(images).sizes(), (std::vector<int64_t>{2, 1, 64, 96})) << neck;
  }
  const auto config = read_text(kRecogniser, {"model.backbone={name: columns}"});
  const auto recogniser = make_model(config.model, 1);
  EXPECT_EQ(recogniser->forward(torch::rand({2, 3, 32, 100})).sizes(),
            (std::vector<int64_t>{25, 2, 37}));
}

TEST(TextParts, FaultsOfABackboneAreNamed) {
  const auto fault = [](const std::string& backbone) {
    return std::string(error_of([&] {
                         detector_on(backbone)->forward(torch::rand({1, 3, 64, 32}));
                       }).what());
  };
  EXPECT_EQ(fault("four_maps, first: 2"),
            "model.backbone: the first map of an image of 64 x 32 must be a quarter, 16 x 8, not "
            "32 x 16");
  EXPECT_EQ(fault("four_maps, channels: [4, 8, 16, 16]"),
            "model.backbone: features() gave maps of [4, 8, 16, 32] channels, feature_channels() "
            "are [4, 8, 16, 16]");
  EXPECT_EQ(
      fault("four_maps, channels: [4, 8, 16, 0]"),
      "model.backbone: 'four_maps' made one whose feature_channels() are [4, 8, 16, 0]: each is at "
      "least 1, and DBFPN takes 4");
  EXPECT_EQ(fault("no_backbone"), "model.backbone: 'no_backbone' made no backbone");
  EXPECT_EQ(fault("columns"),
            "model.backbone: 'columns' made one whose feature_channels() are [8]: each is at least "
            "1, and DBFPN takes 4");
}

/// A detector of one convolution.
class OneConvolution final : public Model {
 public:
  at::Tensor forward(at::Tensor images) override {
    const auto maps = conv_->forward(images).sigmoid();
    return is_training() ? maps : maps.narrow(1, 0, 1);
  }

 private:
  torch::nn::Conv2d conv_ =
      register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 3, 1)));
};

/// A recogniser of images of 32 rows.
class ColumnClasses final : public Model {
 public:
  explicit ColumnClasses(int64_t classes)
      : conv_(register_module(
            "conv",
            torch::nn::Conv2d(torch::nn::Conv2dOptions(3, classes, {32, 4}).stride({32, 4})))) {}
  at::Tensor forward(at::Tensor images) override {
    const auto logits = conv_->forward(images).squeeze(2).permute({2, 0, 1});
    return is_training() ? logits : logits.softmax(2).transpose(0, 1);
  }

 private:
  torch::nn::Conv2d conv_;
};

const NetworkPart kOneConvolution("one_convolution", "a detector", [](Section&) -> NetworkMaker {
  return [](int64_t classes) {
    EXPECT_EQ(classes, 0);
    return std::make_shared<OneConvolution>();
  };
});
const NetworkPart kColumnClasses("column_classes", "a recogniser", [](Section&) -> NetworkMaker {
  return [](int64_t classes) { return std::make_shared<ColumnClasses>(classes); };
});

/// `text` with a whole network. `head`: of the section `model`.
Config with_network(const char* text, const std::string& name, const std::string& head) {
  return read_text(text, {"model.backbone=null", "model.neck=null", "model.head=" + head,
                          "model.network={name: " + name + "}"});
}

/// Trains in a few steps, and expects the loss to fall.
void expect_learning(Model& model, Task& task, const at::Tensor& images, const Tensors& targets) {
  std::vector<double> losses;
  model.train();
  for (int step = 0; step < 20; ++step) {
    model.zero_grad();
    const auto loss = task.loss(model.compute({images}), targets);
    loss.backward();
    losses.push_back(loss.item<double>());
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model.parameters()) parameter.sub_(0.01 * parameter.grad());
  }
  EXPECT_LT(losses.back(), losses.front());
}

TEST(TextParts, AWholeDetectorTrainsAndIsEvaluated) {
  const auto config = with_network(kDetector, "one_convolution", "null");
  const auto model = make_model(config.model, 1);
  const auto task = make_task(config);
  const auto images = torch::rand({2, 3, 16, 24});
  const auto text = torch::zeros({2, 1, 16, 24}), ones = torch::ones({2, 16, 24});
  text.narrow(2, 4, 8).fill_(1);
  expect_learning(*model, *task, images, {text, ones, 0.5 * ones, ones});
  model->eval();
  const torch::NoGradGuard no_grad;
  const auto output = model->forward(images);
  EXPECT_EQ(output.sizes(), (std::vector<int64_t>{2, 1, 16, 24}));
  Batch batch;
  batch.valid = 2;
  set_text_pictures(batch, std::vector<TextPicture>(2));
  EXPECT_EQ(task->result(task->sums({output}, batch)).samples, 2);
}

TEST(TextParts, AWholeRecogniserTrainsAndIsEvaluated) {
  const auto config = with_network(kRecogniser, "column_classes", "{out_channels: 37}");
  const auto model = make_model(config.model, 1);
  const auto task = make_task(config);
  const auto images = torch::rand({2, 3, 32, 100});
  const auto texts = torch::full({2, 23}, 36, torch::kInt);
  texts.narrow(1, 0, 5).fill_(10);
  expect_learning(*model, *task, images, {texts});
  model->eval();
  const torch::NoGradGuard no_grad;
  const auto output = model->forward(images);
  EXPECT_EQ(output.sizes(), (std::vector<int64_t>{2, 25, 37}));
  Batch batch;
  batch.valid = 2;
  set_text_pictures(batch, std::vector<TextPicture>(2));
  EXPECT_EQ(task->result(task->sums({output}, batch)).samples, 2);
}

TEST(TextParts, AnOutputOfAnotherShapeIsRefused) {
  const auto fault = [](const char* text, const Tensors& outputs) {
    const auto task = make_task(read_text(text));
    return std::string(error_of([&] { task->sums(outputs, batch_of_one({})); }).what());
  };
  const auto map = torch::zeros({1, 1, 8, 8});
  const std::string of_one = "the network's output for 1 pictures is ";
  const std::string maps = "; an evaluation needs the map binary, (N, 1, H, W), in float32";
  EXPECT_EQ(fault(kDetector, {torch::zeros({1, 3, 8, 8})}), of_one + "(1, 3, 8, 8) Float" + maps);
  EXPECT_EQ(fault(kDetector, {map.to(torch::kDouble)}), of_one + "(1, 1, 8, 8) Double" + maps);
  EXPECT_EQ(fault(kDetector, {torch::zeros({0, 1, 8, 8})}), of_one + "(0, 1, 8, 8) Float" + maps);
  EXPECT_EQ(fault(kDetector, {at::Tensor()}), of_one + "undefined" + maps);
  EXPECT_EQ(fault(kDetector, {map, map}), "the network has 2 outputs; of text it needs one");
  EXPECT_EQ(fault(kDetector, {}), "the network has 0 outputs; of text it needs one");
  EXPECT_EQ(fault(kRecogniser, {torch::zeros({1, 37})}),
            of_one + "(1, 37) Float; an evaluation needs probabilities, (N, T, K), in float32");
  EXPECT_STREQ(error_of([&] { make_task(read_text(kDetector))->loss({}, {}); }).what(),
               "the network has 0 outputs; of text it needs one");
}

const LossPart kWeighed("weighed_mean", "the outputs' mean, where the first target is 1",
                        [](Section& settings) -> LossFunction {
                          int64_t weight = 1;
                          settings.read("weight", weight, {1, 9}, "of the mean");
                          return [=](const Tensors& outputs, const Tensors& targets) {
                            return weight *
                                   (outputs[0].select(1, 0) * targets[0].select(1, 0)).mean();
                          };
                        });
const LossPart kMany("each_output", "no mean", [](Section&) -> LossFunction {
  return [](const Tensors& outputs, const Tensors&) { return outputs[0]; };
});

TEST(TextParts, ALossGetsTheMapsAndTheirTargets) {
  const auto task = make_task(read_text(kDetector, {"loss={name: weighed_mean, weight: 3}"}));
  EXPECT_TRUE(task->log_names().empty());
  const auto maps = torch::full({2, 3, 8, 8}, 0.5).requires_grad_();
  const auto ones = torch::ones({2, 8, 8});
  const auto loss = task->loss({maps}, {ones.unsqueeze(1), ones, ones, ones});
  EXPECT_EQ(loss.item<double>(), 1.5);
  loss.backward();
  EXPECT_TRUE(maps.grad().defined());
}

TEST(TextParts, ALossGetsFramesAndTexts) {
  const auto task = make_task(read_text(kRecogniser, {"loss={name: weighed_mean}"}));
  const auto frames = torch::full({5, 2, 37}, 0.25);
  EXPECT_EQ(task->loss({frames}, {torch::ones({37, 4}, torch::kInt)}).item<double>(), 0.25);
}

TEST(TextParts, ALossMustBeOneNumber) {
  const auto task = make_task(read_text(kRecogniser, {"loss={name: each_output}"}));
  EXPECT_STREQ(error_of([&] {
                 task->loss({torch::zeros({2, 3})}, {});
               }).what(),
               "loss: 'each_output' gave 6 numbers, not one number");
}

}  // namespace
}  // namespace lockstep
