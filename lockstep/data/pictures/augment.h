#pragma once
// The operations of automatic augmentation, on 8-bit RGB pictures, in Pillow's arithmetic; and the
// tables of torchvision, which say how strong they may be.

#include <opencv2/core.hpp>

#include "lockstep/data/steps.h"

namespace lockstep::inline internal {

/// In torchvision's order, by which they are drawn.
enum class Augment : uint8_t {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
};
inline constexpr int kNumAugments = 14;

/// A new picture. `strength`: pixels per pixel (shear), pixels (translate), degrees against the
/// clock (rotate), the factor less 1 (brightness, color, contrast, sharpness), bits that stay
/// (posterize), the lowest value that is inverted (solarize); unused by the others.
///
/// Moved pictures take the nearest pixel, and black from outside. The bytes are those of Pillow and
/// torchvision's transforms v1.
cv::Mat with_augment(Augment kind, double strength, const cv::Mat& picture);

enum class AugmentTable : uint8_t { kRand, kTrivialWide };

/// Strength `bin` of `bins` in torchvision's table of RandAugment or TrivialAugmentWide, for a
/// picture of `size`; before its sign. 0 for those without one.
double augment_strength(AugmentTable table, Augment kind, int64_t bin, int64_t bins, cv::Size size);
/// Whether half of the draws change the sign.
bool has_sign(Augment kind);
/// Whether the table has strengths for it.
bool has_strength(Augment kind);

cv::Mat augmented(const RandAugment& augment, RandomNumbers& random, const cv::Mat& picture);
cv::Mat augmented(const TrivialAugmentWide& augment, RandomNumbers& random, const cv::Mat& picture);

}  // namespace lockstep::inline internal
