#pragma once
// A transform of one's own changes a Picture, which is on its way to a network.
//
// Use:
//   const lockstep::TransformPart kNegative("Negative", "dark for light", [](lockstep::Section&) {
//     return [](lockstep::Picture& picture) {
//       for (uint8_t& byte : picture.bytes()) byte = 255 - byte;
//     };
//   });
//
// A transform registers as other parts do (registry.h), and the transform_pipeline of a file names
// it among the built-in ones: `- Negative:`. It is for all built-in data sets, of pictures in
// files, of small images and of text (`det`, `rec`), and for PredictDataset.
//
// The function gets the picture of one sample, decoded, after the items before it and before those
// behind it. It must stand before the conversion to floats, so before Normalize or NormalizeImage.
// A grey small image has three equal channels here; a network's input of one channel takes no
// transforms of one's own.
//
// Threads: the loader's threads call one function at the same time, each with a picture of its own.
// So it must not change its captures, nor anything else that is shared. A `mutable` lambda does
// not compile, nor one that takes a copy of its picture, or returns something.
//
// Randomness: the second parameter makes a transform random. Its numbers depend on system.seed, the
// epoch, the sample (drawn by weights, the draw) and the pipeline alone. So neither ranks nor
// threads nor a resume show. A function without it must give the same result for the same picture.
// A random transform is an error in `eval` and `predict`, as built-in ones are.
//
// Size: a function must keep it, so that regions of text stay in their places. Only pictures of a
// classifier may change it. If Resize [height, width], CenterCrop, RandomCrop or RandomResizedCrop
// stands before, another one of these must then stand behind; of small images in any case.
// `predict` and `export` need one of them, too.
//
// Cost: each call adds to the time of a sample, in each epoch, beside training. A copy of a picture
// copies its bytes.
//
// Errors: an Error means that this picture is unusable, as if its file were damaged. A line of the
// log has the file and the text; in training another sample replaces it, in evaluation it is left
// out. Any other exception is a fault of the function, and so is another size. It ends the run, and
// names the file, too. `lockstep train --check` makes one sample, to find faults before.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/error.h"  // for functions that throw it

namespace lockstep {

/// Pixels of 8-bit RGB. Copies are independent; the function may assign another picture to its own.
class Picture {
 public:
  static constexpr int64_t kMaxPixels = int64_t{1} << 28;

  /// Black. Errors: std::invalid_argument for a side below 1, or more than kMaxPixels.
  Picture(int width, int height) : width_(width), height_(height) {
    if (width < 1 || height < 1 || width > kMaxPixels / height) {
      throw std::invalid_argument("no picture can have " + std::to_string(width) + " x " +
                                  std::to_string(height) + " pixels");
    }
    bytes_.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  }

  int width() const { return width_; }
  int height() const { return height_; }

  /// Red, green and blue of each pixel, row by row from the top: 3 * width() * height() bytes.
  std::span<uint8_t> bytes() { return bytes_; }
  std::span<const uint8_t> bytes() const { return bytes_; }

  /// The three bytes of the pixel in column `x` and row `y`, both from 0.
  std::span<uint8_t, 3> pixel(int x, int y) {
    return std::span<uint8_t, 3>(bytes_.data() + place(x, y), 3);
  }
  std::span<const uint8_t, 3> pixel(int x, int y) const {
    return std::span<const uint8_t, 3>(bytes_.data() + place(x, y), 3);
  }

 private:
  size_t place(int x, int y) const {
    return (static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3;
  }

  int width_;
  int height_;
  std::vector<uint8_t> bytes_;
};

/// The random numbers of one sample in one epoch; drawn by weights, those of one draw. A
/// classifier's transforms draw from them in turn; of text each transform has numbers of its own,
/// by its place in the pipeline.
class RandomNumbers {
 public:
  virtual ~RandomNumbers() = default;

  /// 32 random bits.
  virtual uint32_t next() = 0;

  /// In [0, 1), a multiple of 2^-32.
  double uniform() { return next() * 0x1p-32; }
  /// In [0, n), with n from 1 to 2^32. Each value's probability is 1/n to within 2^-32.
  /// Errors: std::invalid_argument for another n.
  int64_t below(int64_t n) {
    if (n < 1 || n > int64_t{1} << 32) {
      throw std::invalid_argument("no random number is below " + std::to_string(n));
    }
    return static_cast<int64_t>((uint64_t{next()} * static_cast<uint64_t>(n)) >> 32);
  }
};

/// The result of a TransformPart. A function of either form converts to it.
using PlainTransform = std::function<void(Picture& picture)>;
using RandomTransform = std::function<void(Picture& picture, RandomNumbers& random)>;
using PictureTransform = std::variant<PlainTransform, RandomTransform>;

/// `function` as one of the two, for TransformPart. Functions that could not work do not compile.
template <typename Function>
PictureTransform picture_transform(Function function) {
  constexpr bool takes_one = std::is_invocable_v<Function&, Picture&>;
  constexpr bool takes_two = std::is_invocable_v<Function&, Picture&, RandomNumbers&>;
  constexpr bool copies = std::is_invocable_v<Function&, Picture> ||
                          std::is_invocable_v<Function&, Picture, RandomNumbers&>;
  constexpr bool stays = std::is_invocable_v<const Function&, Picture&> ||
                         std::is_invocable_v<const Function&, Picture&, RandomNumbers&>;
  static_assert(takes_one || takes_two,
                "a transform must take (lockstep::Picture&), or (lockstep::Picture&, "
                "lockstep::RandomNumbers&)");
  static_assert(!copies,
                "a transform must take its picture as lockstep::Picture&, not as a copy or const: "
                "it changes that picture");
  static_assert(stays || !(takes_one || takes_two),
                "a transform must not be mutable: several threads call it at the same time");
  if constexpr (takes_one) {
    static_assert(std::is_void_v<std::invoke_result_t<Function&, Picture&>>,
                  "a transform must return nothing: it changes the picture that it gets");
  } else if constexpr (takes_two) {
    static_assert(std::is_void_v<std::invoke_result_t<Function&, Picture&, RandomNumbers&>>,
                  "a transform must return nothing: it changes the picture that it gets");
  }
  return PictureTransform(std::move(function));
}
inline PictureTransform picture_transform(PictureTransform function) {
  return function;
}

}  // namespace lockstep
