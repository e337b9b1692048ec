#pragma once
// Changes of geometry that end in a crop. Where the crop lies depends on sizes and regions alone,
// so that it is drawn first, and only the pixels that it leaves are turned and scaled: with
// DBNet's arguments, a third of them.

#include <variant>
#include <vector>

#include "lockstep/base/philox.h"
#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

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
