// The transforms of a classifier, as a file names them and as the manual shows them.

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/yaml_writer.h"
#include "tests/train/config/transform_items.h"

namespace lockstep {
namespace {

/// Each built-in step once, in an order that is allowed.
const std::vector<std::string> kAllItems = {"Resize: {size: 40}",
                                            "CenterCrop: {size: 36}",
                                            "RandomCrop: ",
                                            "RandomResizedCrop: {size: 28}",
                                            "RandomHorizontalFlip: ",
                                            "RandomVerticalFlip: ",
                                            "ColorJitter: {hue: 0.1}",
                                            "RandAugment: ",
                                            "TrivialAugmentWide: ",
                                            "Normalize: ",
                                            "NormalizeImage: ",
                                            "RandomErasing: "};

TEST(TransformsSection, SmallImagesHaveThoseOfPictures) {
  for (const auto& item : kAllItems) {
    EXPECT_EQ(small_step("{" + item + "}").index(), picture_step("{" + item + "}").index()) << item;
    EXPECT_EQ(numbers_of(Images::kSmall, "{" + item + "}"),
              numbers_of(Images::kInFiles, "{" + item + "}"))
        << item;
  }
  EXPECT_EQ(kAllItems.size() + 3, built_in_class_transforms().size()) << "and three of batches";
}

TEST(TransformsSection, SmallImagesMayBeGreyAndHaveADefaultSize) {
  EXPECT_EQ(std::get<Normalize>(small_step("{Normalize: {mean: 0.5, std: 2}}")).std,
            std::vector<double>{2})
      << "of grey images";
  for (const std::string item : {"{Resize: }", "{Resize: {size: null}}", "{Resize: {size: 224}}"}) {
    EXPECT_EQ(std::get<ResizePicture>(small_step(item)).shorter, 224) << item;
  }
  EXPECT_EQ(std::get<ResizePicture>(small_step("{Resize: {size: [40, 50]}}")).exact.width, 50);
}

TEST(TransformsSection, PicturesHaveTorchvisionsSteps) {
  const auto crop = std::get<RandomResizedCrop>(
      picture_step("{RandomResizedCrop: {size: [224, 200], scale: [0.2, 1]}}"));
  EXPECT_EQ(crop.size.height, 224);
  EXPECT_EQ(crop.size.width, 200);
  EXPECT_EQ(crop.scale, std::pair(0.2, 1.0));
  EXPECT_EQ(std::get<ResizePicture>(picture_step("{Resize: {size: 256}}")).shorter, 256);
  const auto exact = std::get<ResizePicture>(picture_step("{Resize: {size: [6, 9]}}")).exact;
  EXPECT_EQ(exact.height, 6);
  EXPECT_EQ(exact.width, 9);
  EXPECT_EQ(std::get<CenterCrop>(picture_step("{CenterCrop: {size: 8}}")).size.width, 8);
  const auto middle = std::get<CenterCrop>(picture_step("{CenterCrop: {size: [6, 9]}}")).size;
  EXPECT_EQ(middle.height, 6);
  EXPECT_EQ(middle.width, 9);
  EXPECT_EQ(std::get<RandomVerticalFlip>(picture_step("{RandomVerticalFlip: {p: 0.3}}")).prob, 0.3);
  const auto erasing = picture_step("{RandomErasing: {p: 0.2, prob: 0.4, value: 3}}");
  EXPECT_EQ(std::get<RandomErasing>(erasing).prob, 0.4) << "its own name comes first";
  EXPECT_EQ(std::get<RandomErasing>(erasing).value, (std::array<float, 3>{3, 3, 3}));
  const auto colour = picture_step("{RandomErasing: {value: [1, 2, 3]}}");
  EXPECT_EQ(std::get<RandomErasing>(colour).value, (std::array<float, 3>{1, 2, 3}));
}

TEST(TransformsSection, StepsKeepTheirOrder) {
  const auto steps = read_items(Images::kInFiles,
                                "{Resize: {size: 9}}, {ToCHWImage: }, {CenterCrop: {size: 8}}, "
                                "{RandomErasing: }")
                         .transforms;
  ASSERT_EQ(steps.size(), 3U) << "ToCHWImage is none";
  const auto is = [&](size_t i, const auto& kind) {
    using Kind = std::decay_t<decltype(kind)>;
    return std::holds_alternative<Kind>(steps[i].step);
  };
  EXPECT_TRUE(is(0, ResizePicture{}));
  EXPECT_TRUE(is(1, CenterCrop{}));
  EXPECT_TRUE(is(2, RandomErasing{}));
}

TEST(TransformsSection, NullIsTheDefault) {
  for (const std::string key : {"p", "prob"}) {
    const auto flip = picture_step("{RandomHorizontalFlip: {" + key + ": null}}");
    EXPECT_EQ(std::get<RandomHorizontalFlip>(flip).prob, 0.5) << key;
  }
}

TEST(TransformsSection, JitterOfOneNumberIsARangeAroundNoChange) {
  const auto jitter = std::get<ColorJitter>(picture_step(
      "{ColorJitter: {brightness: 0.4, contrast: 2, hue: 0.1, saturation: [0.5, 0.9]}}"));
  EXPECT_EQ(jitter.brightness, std::pair(0.6, 1.4));
  EXPECT_EQ(jitter.contrast, std::pair(0.0, 3.0));
  EXPECT_EQ(jitter.saturation, std::pair(0.5, 0.9));
  EXPECT_EQ(jitter.hue, std::pair(-0.1, 0.1));
}

TEST(TransformsSection, NormalizeImageSpeaksOfBytes) {
  const auto given = std::get<Normalize>(
      small_step("{NormalizeImage: {mean: [51, 102, 153], std: [25.5, 51, 255], is_hwc: True}}"));
  EXPECT_DOUBLE_EQ(given.mean[0], 0.2);
  EXPECT_DOUBLE_EQ(given.std[2], 1.0);
  const auto imagenet = std::get<Normalize>(picture_step("{NormalizeImage: }"));
  const std::array<float, 3> mean = {0.485F, 0.456F, 0.406F}, deviation = {0.229F, 0.224F, 0.225F};
  for (size_t c = 0; c < 3; ++c) {  // torchvision's, to the bit
    EXPECT_EQ(static_cast<float>(imagenet.mean.at(c)), mean[c]);
    EXPECT_EQ(static_cast<float>(imagenet.std.at(c)), deviation[c]);
  }
}

TEST(TransformsSection, MixingIsOfABatch) {
  const auto data = read_items(Images::kSmall, "{MixUp: {alpha: 0.2}}, {CutMix: {prob: 0.5}}");
  EXPECT_TRUE(data.transforms.empty());
  EXPECT_EQ(data.mixing.mix_up->alpha, 0.2);
  EXPECT_EQ(data.mixing.cut_mix->prob, 0.5);
  EXPECT_FALSE(read_items(Images::kInFiles, "{ToCHWImage: }").mixing.any());
  for (const auto images : {Images::kSmall, Images::kInFiles}) {
    expect_fault(images, "{MixUp: }, {MixUp: }", "MixUp may stand in transform_pipeline once");
    expect_fault(images, "{CutMix: {alpha: 0}}",
                 "CutMix.alpha must be a number from 0.01 to 1000, not '0'");
  }
}

TEST(TransformsSection, EarlierFilesOfRunsAreRead) {
  const auto expect = [](Images images, const std::string& item, const Numbers& numbers) {
    EXPECT_EQ(numbers_of(images, "{" + item + "}"), numbers) << item;
  };
  for (const auto images : {Images::kSmall, Images::kInFiles}) {
    expect(images, "RandomCrop: {size: 28.0, padding: [2.0]}", {28, 2});
    expect(images, "RandomCrop: {size: [28], padding: 2e0}", {28, 2});
    expect(images, "RandomHorizontalFlip: {prob: [0.25]}", {0.25});
    expect(images, "MixUp: {alpha: [0.2], prob: [0.5]}", {0.2, 0.5});
    expect_fault(images, "{RandomCrop: {size: [1.5]}}",
                 "RandomCrop.size must be a whole number from 1 to 1000000, not '1.5'");
    expect_fault(images, "{MixUp: {alpha: []}}",
                 "MixUp.alpha must be a number from 0.01 to 1000, not a list");
  }
  expect(Images::kInFiles, "RandAugment: {num_ops: 3.0, magnitude: [5], num_magnitude_bins: 7.0}",
         {3, 5, 7});
  expect(Images::kInFiles, "RandomErasing: {p: [0.2], scale: [0.1, 0.2], ratio: [1, 1e6]}",
         {0.2, 0.1, 0.2, 1, 1e6, 0, 0, 0});
  const auto items = "{RandomCrop: {size: 28.0}}, {RandomHorizontalFlip: {p: [0.3]}}";
  const auto text =
      write_yaml(read_text(kPictures, overrides_of(Images::kInFiles, items)).effective);
  EXPECT_EQ(write_yaml(read_text(text).effective), text);
}

TEST(TransformsSection, RandomOnesAreForTraining) {
  for (const std::string name : {"ColorJitter", "RandAugment", "RandomCrop", "MixUp"}) {
    const auto fault = fault_in(kPictures, {"eval.dataset.transform_pipeline=[{" + name + ": }]"});
    EXPECT_NE(fault.find("." + name + " is random, evaluation is not"), std::string::npos) << fault;
  }
}

TEST(TransformsSection, PicturesToPredictAreAsThoseOfTraining) {
  const std::string after_small = "train.dataset={type: Cifar10Dataset, data_dir: d}";
  const auto set = [](const std::string& item) {
    return "predict.dataset={type: PredictDataset, transform_pipeline: [{" + item + "}]}";
  };
  const auto step_after = [&](const std::vector<std::string>& overrides) {
    return read_text(kPictures, overrides).predict->dataset->transforms.at(0).step;
  };
  const std::string eval = "eval.dataset={type: Cifar10Dataset}";
  EXPECT_TRUE(std::holds_alternative<ResizePicture>(step_after({set("Resize: {size: 8}")})));
  EXPECT_TRUE(
      std::holds_alternative<ResizePicture>(step_after({set("Resize: "), after_small, eval})));
  EXPECT_TRUE(std::holds_alternative<CenterCrop>(
      step_after({set("CenterCrop: {size: 8}"), after_small, eval})));
  const auto random = fault_in(kPictures, {set("RandAugment: "), after_small, eval});
  EXPECT_NE(random.find(".RandAugment is random, evaluation is not"), std::string::npos) << random;
}

TEST(TransformsSection, TheEffectiveFileHasDefaultsAndReadsBack) {
  const auto config =
      read_text(kPictures, overrides_of(Images::kInFiles,
                                        "{RandomCrop: }, {RandomHorizontalFlip: {p: 0.3}}, "
                                        "{ColorJitter: {hue: 0.1}}, {MixUp: }"));
  const auto text = write_yaml(config.effective);
  EXPECT_NE(text.find("padding: 4\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("prob: 0.5"), std::string::npos) << "it has its probability as `p`: " << text;
  EXPECT_EQ(write_yaml(read_text(text).effective), text);
}

/// What a default of the manual means, as a file has it.
std::string meant_by(const Setting& setting) {
  static const std::map<std::string, std::string> kNamed = {
      {"mean of CIFAR-10", "[0.4914, 0.4822, 0.4465]"},
      {"std of CIFAR-10", "[0.2470, 0.2435, 0.2616]"},
      {"mean of ImageNet", "[123.675, 116.28, 103.53]"},
      {"std of ImageNet", "[58.395, 57.12, 57.375]"}};
  const auto named = kNamed.find(setting.key + " " + setting.fallback);
  return named == kNamed.end() ? setting.fallback : named->second;
}

TEST(TransformsSection, DefaultsOfTheManualChangeNothing) {
  int checked = 0;
  for (const auto images : {Images::kSmall, Images::kInFiles}) {
    for (const auto& part : built_in_class_transforms()) {
      std::string required;
      for (const auto& setting : part.settings) {
        if (setting.is_required()) required = setting.key + ": 8, ";
      }
      for (const auto& setting : part.settings) {
        if (setting.is_required()) continue;
        const auto written = required + setting.key + ": " + meant_by(setting);
        EXPECT_EQ(numbers_of(images, "{" + part.name + ": {" + written + "}}"),
                  numbers_of(images, "{" + part.name + ": {" + required + "}}"))
            << part.name << ": " << written;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 50);
}

TEST(TransformsSection, DefaultsAreThoseOfTheStructs) {
  const std::map<std::string, PictureStep> steps = {
      {"RandomCrop: ", RandomCrop{}},
      {"RandomResizedCrop: {size: 8}", RandomResizedCrop{}},
      {"RandomHorizontalFlip: ", RandomHorizontalFlip{}},
      {"RandomVerticalFlip: ", RandomVerticalFlip{}},
      {"ColorJitter: ", ColorJitter{}},
      {"RandAugment: ", RandAugment{}},
      {"TrivialAugmentWide: ", TrivialAugmentWide{}},
      {"Normalize: ", Normalize{}},
      {"RandomErasing: ", RandomErasing{}}};
  for (const auto& [item, step] : steps) {
    EXPECT_EQ(numbers_of(Images::kInFiles, "{" + item + "}"), std::visit(NumbersOf(), step))
        << item;
  }
}

TEST(TransformsSection, EveryTransformHasALine) {
  for (const auto& part : built_in_class_transforms()) EXPECT_NE(part.about, "") << part.name;
}

}  // namespace
}  // namespace lockstep
