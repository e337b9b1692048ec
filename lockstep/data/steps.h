#pragma once
// The transforms of a classifier's images, under torchvision's names and with its meanings.

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/data/own_transform.h"

namespace lockstep::inline internal {

/// In pixels.
struct PictureSize {
  int width = 0;
  int height = 0;
};

/// To a size, by resample(). Where ImageTransform does it, it has no antialias, and values are not
/// rounded there.
struct ResizePicture {
  /// Of the shorter side, the longer one in proportion, rounded down; 0: exactly to `exact`.
  int shorter = 0;
  PictureSize exact;
};

/// The size of a picture of `from` after the step; absurd ones stay within an int.
inline PictureSize size_after(const ResizePicture& resize, PictureSize from) {
  if (resize.shorter == 0) return resize.exact;
  const auto longer = [&](int side, int shorter) {
    constexpr double kAbsurd = 1e9;  // its caller refuses it
    const double pixels = static_cast<double>(resize.shorter) * side / shorter;
    return static_cast<int>(std::min(pixels, kAbsurd));
  };
  if (from.width <= from.height) return {resize.shorter, longer(from.height, from.width)};
  return {longer(from.width, from.height), resize.shorter};
}

/// Cuts the middle out. A smaller picture gets black pixels around it.
struct CenterCrop {
  PictureSize size;
};

/// Puts `padding` black pixels on each side, then cuts a square of `size` from a random place.
/// Draws: row, then column.
struct RandomCrop {
  int64_t size = 32;
  int64_t padding = 4;
};

/// Cuts a random part out, and brings it to `size` by resample(). Draws, up to ten times: area,
/// aspect ratio, and for a part that fits row and column. Without one it takes the middle, in the
/// nearest allowed ratio.
/// Source: Szegedy et al., "Going Deeper with Convolutions", CVPR 2015, section 6.
struct RandomResizedCrop {
  PictureSize size{224, 224};
  std::pair<double, double> scale{0.08, 1};         ///< Share of the picture's area.
  std::pair<double, double> ratio{3. / 4, 4. / 3};  ///< Width over height.
};

/// Mirrors left and right with probability `prob`. Draws: one.
struct RandomHorizontalFlip {
  double prob = 0.5;
};

/// Mirrors top and bottom with probability `prob`. Draws: one.
struct RandomVerticalFlip {
  double prob = 0.5;
};

/// Factors of brightness, contrast and saturation, and a shift of hue in turns of the colour
/// circle, in a random order. Draws: three for the order, then one for each range that is not a
/// single number. Arithmetic: Pillow's, on bytes.
struct ColorJitter {
  std::pair<double, double> brightness{1, 1};
  std::pair<double, double> contrast{1, 1};
  std::pair<double, double> saturation{1, 1};
  std::pair<double, double> hue{0, 0};  ///< In [-0.5, 0.5].
};

/// Operations drawn from a list of 14, all of strength `magnitude`: see augment.h. Draws, for each:
/// the operation, and the sign of those that have one.
/// Source: Cubuk et al., "RandAugment", 2019, section 3; torchvision's table.
struct RandAugment {
  int64_t num_ops = 2;
  int64_t magnitude = 9;  ///< In [0, num_magnitude_bins).
  int64_t num_magnitude_bins = 31;
};

/// One operation of that list, of any strength in a wider table. Draws: the operation, the strength
/// of those that have one, the sign.
/// Source: Mueller and Hutter, "TrivialAugment", ICCV 2021; torchvision's table.
struct TrivialAugmentWide {
  int64_t num_magnitude_bins = 31;
};

/// (value / 255 - mean) / std per channel, in float32 and in this order, so that the result has
/// torchvision's bits. Defaults: CIFAR-10's training images.
struct Normalize {
  std::vector<double> mean = {0.4914, 0.4822, 0.4465};
  std::vector<double> std = {0.2470, 0.2435, 0.2616};
};

/// Fills a random rectangle with `value`, with probability `prob`. The last step, after Normalize,
/// whose results it does not touch. Draws: one for `prob`, then, up to ten times, area, aspect
/// ratio, and for a rectangle that fits row and column.
/// Source: Zhong et al., "Random Erasing Data Augmentation", AAAI 2020.
struct RandomErasing {
  double prob = 0.5;
  std::pair<double, double> scale{0.02, 0.33};  ///< Share of the picture's area.
  std::pair<double, double> ratio{0.3, 3.3};    ///< Height over width.
  std::array<float, 3> value{};                 ///< Of each channel.
};

using PictureStep = std::variant<ResizePicture, CenterCrop, RandomCrop, RandomResizedCrop,
                                 RandomHorizontalFlip, RandomVerticalFlip, ColorJitter, RandAugment,
                                 TrivialAugmentWide, Normalize, RandomErasing, OwnTransform>;

/// Whether a step is random.
inline bool draws_numbers(const PictureStep& step) {
  if (const auto* own = std::get_if<OwnTransform>(&step)) {
    return std::holds_alternative<RandomTransform>(own->transform);
  }
  return !std::holds_alternative<ResizePicture>(step) &&
         !std::holds_alternative<CenterCrop>(step) && !std::holds_alternative<Normalize>(step);
}

}  // namespace lockstep::inline internal
