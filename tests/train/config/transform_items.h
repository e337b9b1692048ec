#pragma once
// Items of a classifier's transform_pipeline: as they are read, and their errors.

#include <string>
#include <variant>
#include <vector>

#include "tests/train/config/configs.h"

namespace lockstep::inline internal {

enum class Images { kSmall, kInFiles };

inline std::vector<std::string> overrides_of(Images images, const std::string& items) {
  const std::string type = images == Images::kSmall ? "Cifar10Dataset" : "ImageFolderDataset";
  return {"train.dataset={type: " + type + ", data_dir: d, transform_pipeline: [" + items + "]}"};
}

inline DatasetConfig read_items(Images images, const std::string& items) {
  auto overrides = overrides_of(images, items);
  if (images == Images::kSmall) overrides.push_back("eval.dataset={type: Cifar10Dataset}");
  return read_text(kPictures, overrides).train.dataset;
}

inline PictureStep small_step(const std::string& item) {
  return read_items(Images::kSmall, item).transforms.at(0).step;
}

inline PictureStep picture_step(const std::string& item) {
  return read_items(Images::kInFiles, item).transforms.at(0).step;
}

/// A step as it was read, number by number.
using Numbers = std::vector<double>;
struct NumbersOf {
  Numbers operator()(const ResizePicture& resize) const {
    return {1. * resize.shorter, 1. * resize.exact.height, 1. * resize.exact.width};
  }
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

inline Numbers numbers_of(Images images, const std::string& item) {
  const auto data = read_items(images, item);
  const auto& [mix_up, cut_mix] = data.mixing;
  if (mix_up) return {mix_up->alpha, mix_up->prob};
  if (cut_mix) return {cut_mix->alpha, cut_mix->prob};
  return std::visit(NumbersOf(), data.transforms.at(0).step);
}

/// The error begins with the place of the pipeline, and goes on with `said`.
inline void expect_fault(Images images, const std::string& items, const std::string& said) {
  const auto overrides = overrides_of(images, items);
  EXPECT_EQ(fault_in(kPictures, overrides),
            "-o " + overrides[0] + ": train.dataset.transform_pipeline." + said);
}

}  // namespace lockstep::inline internal
