#pragma once
// Changes of geometry that end in a crop. Where the crop lies depends on sizes and regions alone,
// so that it is drawn first, and only the pixels that it leaves are turned and scaled: with
// DBNet's arguments, a third of them.

#include <array>
#include <optional>
#include <variant>
#include <vector>

#include "lockstep/base/philox.h"
#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

// Scaling, turning and mirroring an image together with its regions: first decided, then carried
// out, on the whole image or on as much of it as a crop will leave.

/// A decided change of all pixels' places.
struct Warp {
  enum class Kind : uint8_t { kScale, kRotate, kFlip };
  Kind kind = Kind::kScale;
  cv::Size from, to;     ///< Size of the image before and after.
  double scale = 1;      ///< kScale.
  cv::Matx23d matrix{};  ///< kRotate: from (x, y, 1) before to (x, y) after.
};

/// With probability p: image and polygons times a factor from scale_range, which size_limits
/// narrows. Draws: one, then one. Error(kInvalidArgument): more than kMaxImagePixels.
std::optional<Warp> draw(const RandomScale& options, cv::Size size, Philox& draws);

/// With probability p: turns by a whole number of degrees, counterclockwise for the eye, around
/// pixel (W / 2, H / 2), halves cut off; black where there was nothing. Expanded, the canvas is
/// int(H |sin| + W |cos|) wide and int(H |cos| + W |sin|) high, the centre in its middle.
/// Draws: one, then one.
std::optional<Warp> draw(const RandomRotate& options, cv::Size size, Philox& draws);

/// With probability p: left becomes right, x becomes W - 1 - x, and the order of corners is
/// reversed, so that they go round as before. Draws: one.
std::optional<Warp> draw(const RandomHorizontalFlip& options, cv::Size size, Philox& draws);

/// For a range and sides, the range narrowed by size_limits: neither side may come out below the
/// first or above the second. The ends may have changed places where both cannot hold.
std::array<double, 2> limited_range(const RandomScale& options, cv::Size size);

void move_regions(const Warp& warp, std::vector<TextRegion>& regions);

/// What `warps`, one after another, make of `image`, of which only `part` is wanted. The pixels are
/// those of the whole, cut after, but for roundings: scaled ones differ by 1 at most, turned ones
/// by what a shift of 1/32 pixel makes. Cost: by the pixels of `part`, not of the image.
cv::Mat warped_part(const std::vector<Warp>& warps, const cv::Mat& image, const cv::Rect& part);

/// That part, resized by `scale` after.
cv::Mat warped_part(const std::vector<Warp>& warps, const cv::Mat& image, const cv::Rect& part,
                    double scale);

using WarpOptions = std::variant<RandomScale, RandomRotate, RandomHorizontalFlip>;

/// Where a transform takes its random numbers from.
struct SampleDraws {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t index = 0;

  /// The stream of the transform at `place` in the pipeline.
  Philox at(size_t place) const {
    return {seed + 0x9E3779B97F4A7C15 * (place + 1), static_cast<uint32_t>(epoch),
            static_cast<uint64_t>(index)};
  }
};

/// Carries out `warps`, which stand in the pipeline from `place` on, on regions and image.
void warp_image(const std::vector<WarpOptions>& warps, size_t place, const SampleDraws& draws,
                Sample& sample);

/// The same, and the crop that stands behind them. Error(kInvalidArgument): a part so thin that
/// nothing of it is left.
void warp_and_crop(const std::vector<WarpOptions>& warps, const RandomCropWithBBox& crop,
                   size_t place, const SampleDraws& draws, Sample& sample);

}  // namespace lockstep::ocr
