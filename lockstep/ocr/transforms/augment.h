#pragma once
// Changes of geometry that end in a crop. The crop's place depends on sizes and regions alone, so
// it is drawn first. Only its pixels are then rotated and scaled: with DBNet's arguments, a third
// of them.

#include <array>
#include <optional>
#include <variant>
#include <vector>

#include "lockstep/base/philox.h"
#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

// Scaling, rotation and mirroring of an image together with its regions. They are first drawn, then
// carried out on the whole image or on the part for a crop.

/// A drawn change of all pixels' places.
struct Warp {
  enum class Kind : uint8_t { kScale, kRotate, kFlip };
  Kind kind = Kind::kScale;
  cv::Size from, to;     ///< Size of the image before and after.
  double scale = 1;      ///< kScale.
  cv::Matx23d matrix{};  ///< kRotate: from (x, y, 1) before to (x, y) after.
};

/// With probability p: image and polygons times a factor from scale_range, limited by size_limits.
/// Draws: one, then one. Error(kInvalidArgument): more than kMaxImagePixels.
std::optional<Warp> draw(const RandomScale& options, cv::Size size, Philox& draws);

/// With probability p: rotates by a whole number of degrees, counterclockwise on the screen, around
/// pixel (W / 2, H / 2), halves cut off. The rest is black. Expanded, the canvas is int(H |sin| + W
/// |cos|) wide and int(H |cos| + W |sin|) high, the centre in its middle. Draws: one, then one.
std::optional<Warp> draw(const RandomRotate& options, cv::Size size, Philox& draws);

/// With probability p: left becomes right, x becomes W - 1 - x. The order of corners is reversed,
/// so that their direction stays the same. Draws: one.
std::optional<Warp> draw(const RandomHorizontalFlip& options, cv::Size size, Philox& draws);

/// The range of factors for which neither side gets below the first or above the second of
/// size_limits. Its ends may be exchanged if both limits cannot hold.
std::array<double, 2> limited_range(const RandomScale& options, cv::Size size);

void move_regions(const Warp& warp, std::vector<TextRegion>& regions);

/// Applies `warps` in turn to `image`, and returns `part` of the result. Its pixels are those of
/// the whole result, cut afterwards, except for rounding. Scaled pixels differ by 1 at most,
/// rotated ones as by a shift of 1/32 pixel. Cost: by the pixels of `part`, not of the image.
cv::Mat warped_part(const std::vector<Warp>& warps, const cv::Mat& image, const cv::Rect& part);

/// That part, resized by `scale` afterwards.
cv::Mat warped_part(const std::vector<Warp>& warps, const cv::Mat& image, const cv::Rect& part,
                    double scale);

using WarpOptions = std::variant<RandomScale, RandomRotate, RandomHorizontalFlip>;

/// The source of a transform's random numbers.
struct SampleDraws {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t key = 0;  ///< See BatchRows.

  /// The stream of the transform at `place` in the pipeline.
  Philox at(size_t place) const {
    return {seed + 0x9E3779B97F4A7C15 * (place + 1), static_cast<uint32_t>(epoch),
            static_cast<uint64_t>(key)};
  }
};

/// Carries out `warps`, from `place` on in the pipeline, on regions and image.
void warp_image(const std::vector<WarpOptions>& warps, size_t place, const SampleDraws& draws,
                Sample& sample);

/// The same, followed by the crop. Error(kInvalidArgument): a part so thin that nothing of it
/// remains.
void warp_and_crop(const std::vector<WarpOptions>& warps, const RandomCropWithBBox& crop,
                   size_t place, const SampleDraws& draws, Sample& sample);

}  // namespace lockstep::ocr
