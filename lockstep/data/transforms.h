#pragma once
// The way from the bytes of an image to the network's input: crop, flip and normalise in one pass.
// Other lists of steps go through PicturePipeline (pictures/pipeline.h), where these three have the
// same bits.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/steps.h"

namespace lockstep::inline internal {

/// Per channel the float of each byte; without `normalize` in [0, 1]. Errors: kInvalidArgument if
/// it has not one number per channel, or a std that is not above 0.
using ByteTables = std::vector<std::array<float, 256>>;
ByteTables byte_tables(const Normalize* normalize, int64_t channels);

/// Of the network's input, for images of `stored`; `channels`: as configured, 0 for theirs. Errors:
/// kInvalidArgument if images of several channels would get another number.
int64_t network_channels(const ImageShape& stored, int64_t channels);

/// Errors: kInvalidArgument if the crop is larger than a picture of `from` with its padding.
void check_crop(const RandomCrop& crop, PictureSize from);

/// Steps prepared for images of one shape. Immutable: any number of threads may apply() it.
///
/// ResizePicture is bilinear here, corners of pixels aligned, as cv2.resize and MindSpore's Resize,
/// without rounding of values. Cost: about 4 ns per value.
///
/// The random values of a sample depend on (seed, epoch, key) alone; see BatchRows. They are words
/// 0, 1, .. of the Philox stream of these three. The steps take them in their order. So an image is
/// the same on any rank and thread, and after a resume.
class ImageTransform {
 public:
  /// Whether these steps may be done here: RandomCrop at most once, and RandomHorizontalFlip; then
  /// at most one ResizePicture; then at most one Normalize.
  static bool takes(const std::vector<PictureStep>& steps);

  /// Errors: kInvalidArgument if it does not take the steps, or a list has not one number per
  /// channel; those of the functions above.
  ///
  /// `channels`: of the output; a grey image may become three equal ones. 0: those of the input.
  ImageTransform(std::vector<PictureStep> steps, ImageShape input, uint64_t seed,
                 int64_t channels = 0);

  ImageShape input() const { return input_; }
  ImageShape output() const { return output_; }
  /// image: (C, H, W) of input(), out: (C, H', W') of output(). Cost: about a nanosecond per value.
  void apply(std::span<const uint8_t> image, int64_t epoch, int64_t key,
             std::span<float> out) const;

 private:
  void sample(std::span<const uint8_t> image, int64_t epoch, int64_t key, float* out) const;

  std::vector<PictureStep> steps_;
  ImageShape input_;
  ImageShape sampled_;  // after crop and flip
  ImageShape output_;
  uint64_t seed_;
  ByteTables tables_;
};

}  // namespace lockstep::inline internal
