#pragma once
// The way from the bytes of an image to the network's input: crop, flip and normalise in one pass.

#include <array>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "lockstep/base/philox.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/own_transform.h"

namespace lockstep::inline internal {

/// Puts `padding` black pixels on each side, then cuts a square of `size` from a random place.
/// Draws: row, then column. The output is (C, size, size).
struct RandomCrop {
  int64_t size = 32;
  int64_t padding = 4;
};

/// Mirrors left and right with probability `prob`. Draws: one.
struct RandomHorizontalFlip {
  double prob = 0.5;
};

/// Bilinear, corners of pixels aligned, as cv2.resize and MindSpore's Resize, without rounding of
/// values. After crop and flip; to (C, height, width). Cost: about 4 ns per value.
struct Resize {
  int64_t height = 224;
  int64_t width = 224;
};

/// (value / 255 - mean) / std per channel, in float32 and in this order, so that the result has
/// torchvision's bits. The last step. Defaults: CIFAR-10's training images.
struct Normalize {
  std::vector<double> mean = {0.4914, 0.4822, 0.4465};
  std::vector<double> std = {0.2470, 0.2435, 0.2616};
};

/// OwnTransform keeps the size, and makes three channels of a grey image's one.
using Transform = std::variant<RandomCrop, RandomHorizontalFlip, Resize, Normalize, OwnTransform>;

/// Per channel the float of each byte; without `normalize` in [0, 1]. Errors: kInvalidArgument if
/// it has not one number per channel, or a std that is not above 0.
using ByteTables = std::vector<std::array<float, 256>>;
ByteTables byte_tables(const Normalize* normalize, int64_t channels);

/// Steps prepared for images of one shape. Immutable: any number of threads may apply() it.
///
/// The random values of a sample depend on (seed, epoch, index of the sample) alone. They are words
/// 0, 1, .. of the Philox stream with this key and counter, in the order of the steps. So an image
/// is the same on any rank and thread, and after a resume.
class ImageTransform {
 public:
  /// Errors: kInvalidArgument if a step cannot follow another, a crop is larger than the padded
  /// image, or a list has not one number per channel. Normalize is the last step; there is at most
  /// one RandomCrop and one Resize, and no random or registered step after Resize. A registered one
  /// needs an output of three channels.
  ///
  /// `channels`: of the output; a grey image may become three equal ones. 0: those of the input.
  ImageTransform(std::vector<Transform> steps, ImageShape input, uint64_t seed,
                 int64_t channels = 0);

  ImageShape input() const { return input_; }
  ImageShape output() const { return output_; }
  /// A registered transform is among the steps.
  bool has_own() const;

  /// image: (C, H, W) of input(), out: (C, H', W') of output(). Cost: about a nanosecond per value;
  /// each registered transform adds a copy there and back. Errors: those of apply_in_size().
  void apply(std::span<const uint8_t> image, int64_t epoch, int64_t index,
             std::span<float> out) const;

 private:
  void sample(std::span<const uint8_t> image, int64_t epoch, int64_t index, float* out) const;

  std::vector<Transform> steps_;
  ImageShape input_;
  ImageShape sampled_;  // after crop and flip
  ImageShape output_;
  uint64_t seed_;
  ByteTables tables_;
};

}  // namespace lockstep::inline internal
