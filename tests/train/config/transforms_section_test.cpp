// The transforms of a classifier, as a file names them and as the manual shows them.

#include <gtest/gtest.h>

#include <map>

#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/yaml_writer.h"
#include "tests/train/config/configs.h"

namespace lockstep {
namespace {

enum class Images { kSmall, kInFiles };

std::vector<std::string> overrides_of(Images images, const std::string& items) {
  const std::string type = images == Images::kSmall ? "Cifar10Dataset" : "ImageFolderDataset";
  return {"train.dataset={type: " + type + ", data_dir: d, transform_pipeline: [" + items + "]}"};
}

DatasetConfig read_items(Images images, const std::string& items) {
  auto overrides = overrides_of(images, items);
  if (images == Images::kSmall) overrides.push_back("eval.dataset={type: Cifar10Dataset}");
  return read_text(kPictures, overrides).train.dataset;
}

Transform small_step(const std::string& item) {
  return std::get<Transform>(read_items(Images::kSmall, item).transforms.at(0).step);
}

PictureStep picture_step(const std::string& item) {
  return std::get<PictureStep>(read_items(Images::kInFiles, item).transforms.at(0).step);
}

/// The error begins with the place of the pipeline, and goes on with `said`.
void expect_fault(Images images, const std::string& items, const std::string& said) {
  const auto overrides = overrides_of(images, items);
  EXPECT_EQ(fault_in(kPictures, overrides),
            "-o " + overrides[0] + ": train.dataset.transform_pipeline." + said);
}

void expect_near(const std::string& items, const std::string& hint) {
  for (const auto images : {Images::kSmall, Images::kInFiles}) {
    const auto fault = fault_in(kPictures, overrides_of(images, items));
    EXPECT_NE(fault.find("did you mean '" + hint + "'?"), std::string::npos) << fault;
  }
}

TEST(TransformsSection, SmallImagesHaveTheirSteps) {
  const auto crop = std::get<RandomCrop>(small_step("{RandomCrop: {size: 28, padding: 0}}"));
  EXPECT_EQ(crop.size, 28);
  EXPECT_EQ(crop.padding, 0);
  EXPECT_EQ(std::get<RandomHorizontalFlip>(small_step("{RandomHorizontalFlip: {p: 1}}")).prob, 1);
  const auto square = std::get<Resize>(small_step("{Resize: {size: 40}}"));
  EXPECT_EQ(square.height, 40);
  EXPECT_EQ(square.width, 40);
  EXPECT_EQ(std::get<Resize>(small_step("{Resize: {size: [40, 50]}}")).width, 50);
  EXPECT_EQ(std::get<Normalize>(small_step("{Normalize: {mean: [1, 2, 3]}}")).mean,
            (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(std::get<Normalize>(small_step("{Normalize: {mean: 0.5, std: 2}}")).std,
            std::vector<double>{2})
      << "of grey images";
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
  EXPECT_EQ(std::get<RandomVerticalFlip>(picture_step("{RandomVerticalFlip: {p: 0.3}}")).prob, 0.3);
  const auto erasing = picture_step("{RandomErasing: {p: 0.2, prob: 0.4, value: 3}}");
  EXPECT_EQ(std::get<RandomErasing>(erasing).prob, 0.4) << "its own name comes first";
  EXPECT_EQ(std::get<RandomErasing>(erasing).value, (std::array<float, 3>{3, 3, 3}));
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
    expect_fault(images, "{MixUp: }, {MixUp: }", "MixUp may stand there once");
    expect_fault(images, "{CutMix: {alpha: 0}}",
                 "CutMix.alpha must be a number from 0.01 to 1000, not '0'");
  }
}

TEST(TransformsSection, MistakesNameTheNearest) {
  expect_near("{RandomCorp: }", "RandomCrop");
  expect_near("{RandomCrop: {paddin: 4}}", "padding");
  expect_near("{MixUp: {alpa: 1}}", "alpha");
  const auto fault = fault_in(kPictures, overrides_of(Images::kInFiles, "{CentreCrop: {size: 8}}"));
  EXPECT_NE(fault.find("did you mean 'CenterCrop'?"), std::string::npos) << fault;
}

TEST(TransformsSection, ImpossibleValuesAreOneLine) {
  const auto small = [](const std::string& items, const std::string& said) {
    expect_fault(Images::kSmall, items, said);
  };
  small("{RandomCrop: {size: 0}}",
        "RandomCrop.size must be a whole number from 1 to 1000000, not '0'");
  small("{RandomCrop: {padding: 1.5}}",
        "RandomCrop.padding must be a whole number from 0 to 1000000, not '1.5'");
  small("{RandomCrop: {padding: [1, 2]}}",
        "RandomCrop.padding must be a whole number from 0 to 1000000, not a list");
  small("{Resize: {size: [8, 8, 8]}}",
        "Resize.size must be one whole number or [height, width], each from 1 to 16384");
  small("{NormalizeImage: {bgr_to_rgb: True}}",
        "NormalizeImage.bgr_to_rgb cannot be 'True': these images are RGB already");
}

TEST(TransformsSection, ImpossibleValuesOfPicturesAreOneLine) {
  const auto pictures = [](const std::string& items, const std::string& said) {
    expect_fault(Images::kInFiles, items, said);
  };
  pictures("{Resize: }", "Resize.size is missing: one whole number, or [height, width]");
  pictures("{CenterCrop: {size: 0}}",
           "CenterCrop.size must be one whole number or [height, width], each from 1 to 16384");
  pictures("{RandomResizedCrop: {size: 8, scale: [0.5, 1.5]}}",
           "RandomResizedCrop.scale must be a list of 2 numbers from 1e-06 to 1");
  pictures("{RandomResizedCrop: {size: 8, ratio: [2, 1]}}",
           "RandomResizedCrop.ratio must be two numbers, the larger one last");
  pictures("{RandomErasing: {p: 2}}", "RandomErasing.p must be a number from 0 to 1, not '2'");
  pictures("{RandomErasing: {value: [1, 2]}}",
           "RandomErasing.value must be one number, or one for each of 3 channels");
  pictures("{ColorJitter: {hue: 0.6}}",
           "ColorJitter.hue must be one number, or two in ascending order from -0.5 to 0.5");
  pictures("{ColorJitter: {contrast: -1}}", "ColorJitter.contrast must not be below 0");
  pictures("{RandAugment: {magnitude: 31}}",
           "RandAugment.magnitude is 31; it must be below num_magnitude_bins, 31");
}

TEST(TransformsSection, RandomOnesAreForTraining) {
  for (const std::string name : {"ColorJitter", "RandAugment", "RandomCrop", "MixUp"}) {
    const auto fault = fault_in(kPictures, {"eval.dataset.transform_pipeline=[{" + name + ": }]"});
    EXPECT_NE(fault.find("." + name + " is random, evaluation is not"), std::string::npos) << fault;
  }
}

TEST(TransformsSection, PicturesToPredictAreAsThoseOfTraining) {
  const std::string set =
      "predict.dataset={type: PredictDataset, transform_pipeline: [{Resize: "
      "{size: 8}}]}";
  const auto step_after = [&](const std::vector<std::string>& overrides) {
    return read_text(kPictures, overrides).predict->dataset->transforms.at(0).step;
  };
  EXPECT_TRUE(std::holds_alternative<PictureStep>(step_after({set})));
  EXPECT_TRUE(std::holds_alternative<Transform>(
      step_after({set, "train.dataset={type: Cifar10Dataset, data_dir: d}",
                  "eval.dataset={type: "
                  "Cifar10Dataset}"})));
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

/// A step as it was read, number by number.
using Numbers = std::vector<double>;
struct NumbersOf {
  Numbers operator()(const ResizePicture& resize) const {
    return {1. * resize.shorter, 1. * resize.exact.height, 1. * resize.exact.width};
  }
  Numbers operator()(const Resize& resize) const { return {1. * resize.height, 1. * resize.width}; }
  Numbers operator()(const CenterCrop& crop) const {
    return {1. * crop.size.height, 1. * crop.size.width};
  }
  Numbers operator()(const RandomCrop& crop) const { return {1. * crop.size, 1. * crop.padding}; }
  Numbers operator()(const RandomResizedCrop& crop) const {
    return {crop.scale.first, crop.scale.second, crop.ratio.first, crop.ratio.second};
  }
  Numbers operator()(const RandomHorizontalFlip& flip) const { return {flip.prob}; }
  Numbers operator()(const RandomVerticalFlip& flip) const { return {flip.prob}; }
  Numbers operator()(const ColorJitter& jitter) const {
    return {jitter.brightness.first, jitter.brightness.second, jitter.contrast.first,
            jitter.contrast.second,  jitter.saturation.first,  jitter.saturation.second,
            jitter.hue.first,        jitter.hue.second};
  }
  Numbers operator()(const RandAugment& augment) const {
    return {1. * augment.num_ops, 1. * augment.magnitude, 1. * augment.num_magnitude_bins};
  }
  Numbers operator()(const TrivialAugmentWide& augment) const {
    return {1. * augment.num_magnitude_bins};
  }
  Numbers operator()(const Normalize& normalize) const {
    Numbers numbers = normalize.mean;
    numbers.insert(numbers.end(), normalize.std.begin(), normalize.std.end());
    return numbers;
  }
  Numbers operator()(const RandomErasing& erasing) const {
    return {erasing.prob,         erasing.scale.first, erasing.scale.second, erasing.ratio.first,
            erasing.ratio.second, erasing.value[0],    erasing.value[1],     erasing.value[2]};
  }
  Numbers operator()(const OwnTransform&) const { return {}; }
};

Numbers numbers_of(Images images, const std::string& item) {
  const auto data = read_items(images, item);
  const auto& [mix_up, cut_mix] = data.mixing;
  if (mix_up) return {mix_up->alpha, mix_up->prob};
  if (cut_mix) return {cut_mix->alpha, cut_mix->prob};
  return std::visit([](const auto& step) { return std::visit(NumbersOf(), step); },
                    data.transforms.at(0).step);
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
  const std::vector<std::pair<Images, std::vector<ListedPart>>> all = {
      {Images::kSmall, built_in_small_image_transforms()},
      {Images::kInFiles, built_in_picture_transforms()}};
  int checked = 0;
  for (const auto& [images, parts] : all) {
    for (const auto& part : parts) {
      std::string required;
      for (const auto& setting : part.settings) {
        if (setting.fallback == "required") required = setting.key + ": 8, ";
      }
      for (const auto& setting : part.settings) {
        if (setting.fallback == "required") continue;
        const auto written = required + setting.key + ": " + meant_by(setting);
        EXPECT_EQ(numbers_of(images, "{" + part.name + ": {" + written + "}}"),
                  numbers_of(images, "{" + part.name + ": {" + required + "}}"))
            << part.name << ": " << written;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 30);
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
  EXPECT_EQ(numbers_of(Images::kSmall, "{Resize: }"), NumbersOf()(Resize{}));
}

TEST(TransformsSection, EveryTransformHasALine) {
  for (const auto& parts : {built_in_picture_transforms(), built_in_small_image_transforms()}) {
    for (const auto& part : parts) EXPECT_NE(part.about, "") << part.name;
  }
}

}  // namespace
}  // namespace lockstep
