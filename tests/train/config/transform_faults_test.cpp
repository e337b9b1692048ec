// What is refused in a classifier's transforms: names, values, and where the error points to.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/train/config/transform_items.h"

namespace lockstep {
namespace {

void expect_near(const std::string& items, const std::string& hint) {
  for (const auto images : {Images::kSmall, Images::kInFiles}) {
    const auto fault = fault_in(kPictures, overrides_of(images, items));
    EXPECT_NE(fault.find("did you mean '" + hint + "'?"), std::string::npos) << fault;
  }
}

TEST(TransformFaults, MistakesNameTheNearest) {
  expect_near("{RandomCorp: }", "RandomCrop");
  expect_near("{RandomCrop: {paddin: 4}}", "padding");
  expect_near("{MixUp: {alpa: 1}}", "alpha");
  expect_near("{CentreCrop: {size: 8}}", "CenterCrop");
  expect_near("{TrivialAugment: }", "TrivialAugmentWide");
  expect_near("{CenterCrop: {sise: 8}}", "size");
}

TEST(TransformFaults, ImpossibleValuesAreOneLine) {
  const auto small = [](const std::string& items, const std::string& said) {
    expect_fault(Images::kSmall, items, said);
  };
  small("{RandomCrop: {size: 0}}",
        "RandomCrop.size must be a whole number from 1 to 1000000, not '0'");
  small("{RandomCrop: {padding: 1.5}}",
        "RandomCrop.padding must be a whole number from 0 to 1000000, not '1.5'");
  small("{RandomCrop: {padding: [1, 2]}}",
        "RandomCrop.padding must be a whole number from 0 to 1000000, not a list");
  small("{Resize: {size: 0}}",
        "Resize.size must be one whole number or [height, width], each from 1 to 16384");
  small("{Resize: {size: [8, 8, 8]}}",
        "Resize.size must be one whole number or [height, width], each from 1 to 16384");
  small("{NormalizeImage: {bgr_to_rgb: True}}",
        "NormalizeImage.bgr_to_rgb cannot be 'True': these images are RGB already");
}

TEST(TransformFaults, ImpossibleValuesAreThoseOfAllImages) {
  const auto pictures = [](const std::string& items, const std::string& said) {
    for (const auto images : {Images::kSmall, Images::kInFiles}) expect_fault(images, items, said);
  };
  expect_fault(Images::kInFiles, "{Resize: }",
               "Resize.size is missing: one whole number, or [height, width]");
  pictures("{CenterCrop: }", "CenterCrop.size is missing: one whole number, or [height, width]");
  pictures("{CenterCrop: {size: 0}}",
           "CenterCrop.size must be one whole number or [height, width], each from 1 to 16384");
  pictures("{RandomResizedCrop: {size: 8, scale: [0.5, 1.5]}}",
           "RandomResizedCrop.scale must be two numbers from 1e-06 to 1, in ascending order");
  pictures("{RandomErasing: {scale: 0.1}}",
           "RandomErasing.scale must be two numbers from 1e-06 to 1, in ascending order");
  pictures("{RandomResizedCrop: {size: 8, ratio: [2, 1]}}",
           "RandomResizedCrop.ratio must be two numbers from 1e-06 to 1000000, in ascending order");
  pictures("{RandomErasing: {p: 2}}", "RandomErasing.p must be a number from 0 to 1, not '2'");
  pictures("{RandomErasing: {value: [1, 2]}}",
           "RandomErasing.value must be one number, or one for each of 3 channels");
  pictures("{ColorJitter: {hue: 0.6}}",
           "ColorJitter.hue must be one number, or two in ascending order from -0.5 to 0.5");
  pictures("{ColorJitter: {contrast: -1}}", "ColorJitter.contrast must not be below 0");
  pictures("{RandAugment: {magnitude: 31}}",
           "RandAugment.magnitude is 31; it must be below num_magnitude_bins, 31");
  pictures("{RandAugment: {num_magnitude_bins: 5}}",
           "RandAugment.num_magnitude_bins is 5; it must be above magnitude, 9 unless given");
}

TEST(TransformFaults, ImpossibleProbabilitiesAreOneLine) {
  for (const auto images : {Images::kSmall, Images::kInFiles}) {
    const auto refused = [&](const std::string& item, const std::string& key,
                             const std::string& value) {
      const auto range = key + " must be a number from 0 to 1, not '" + value + "'";
      expect_fault(images, "{" + item + "}", item.substr(0, item.find(':')) + "." + range);
    };
    refused("RandomHorizontalFlip: {prob: 1.5}", "prob", "1.5");
    refused("RandomHorizontalFlip: {prob: -0.1, p: 0.5}", "prob", "-0.1");
    refused("RandomHorizontalFlip: {p: banana, prob: 0.4}", "p", "banana");
    refused("RandomHorizontalFlip: {p: 2, prob: 3}", "p", "2");
    refused("MixUp: {prob: 2}", "prob", "2");
    refused("CutMix: {prob: -1}", "prob", "-1");
  }
}

TEST(TransformFaults, ImpossibleMeansAndDeviationsAreOneLine) {
  for (const auto images : {Images::kSmall, Images::kInFiles}) {
    const std::string grey = images == Images::kSmall ? ", or one of grey images" : "";
    expect_fault(images, "{Normalize: {mean: []}}", "Normalize.mean must be three numbers" + grey);
    expect_fault(images, "{Normalize: {std: [1, 2]}}",
                 "Normalize.std must be three numbers" + grey);
    expect_fault(images, "{Normalize: {std: [1, 0, 1]}}", "Normalize.std must be above 0");
    expect_fault(images, "{Normalize: {std: [1, 1e300, 1]}}",
                 "Normalize.std has a number that is too large");
    expect_fault(images, "{Normalize: {mean: [1, 1e300, 1]}}",
                 "Normalize.mean has a number that is too large");
    expect_fault(images, "{NormalizeImage: {std: [1, 1, -1]}}",
                 "NormalizeImage.std must be above 0");
  }
  expect_fault(Images::kInFiles, "{Normalize: {mean: [0.5], std: [1]}}",
               "Normalize.mean must be three numbers");
  expect_fault(Images::kSmall, "{Normalize: {mean: 0.5}}",
               "Normalize.mean must have as many numbers as std, 3, not 1");
  expect_fault(Images::kSmall, "{RandomCrop: }, {Normalize: {std: 2}}",
               "Normalize.std must have as many numbers as mean, 3, not 1");
}

TEST(TransformFaults, AnErrorHasTheLineOfItsArgument) {
  std::string text = kPictures;
  const std::string before = "    held_out: 10\n";
  text.insert(text.find(before) + before.size(),
              "    transform_pipeline:\n"
              "      - RandomCrop:\n"
              "          padding: 4\n"
              "          size: 0\n");
  EXPECT_EQ(fault_in(text, {}),
            "t.yaml:15: train.dataset.transform_pipeline.RandomCrop.size must be a whole number "
            "from 1 to 1000000, not '0'");
}

}  // namespace
}  // namespace lockstep
