#pragma once
// Labelled images in memory, before any transform.

#include <cstdint>
#include <span>

namespace lockstep::inline internal {

enum class Split { kTrain, kTest, kAll };  ///< kAll: the training images, then the test images.

struct ImageShape {
  int64_t channels = 3;
  int64_t height = 0;
  int64_t width = 0;

  constexpr int64_t numel() const { return channels * height * width; }
  bool operator==(const ImageShape&) const = default;
};

/// Samples 0 .. size()-1, all of one shape. Read-only once made: any number of threads may read.
class ImageDataset {
 public:
  virtual ~ImageDataset() = default;

  virtual int64_t size() const = 0;
  virtual ImageShape shape() const = 0;
  /// In [0, num_classes()).
  virtual int64_t label(int64_t index) const = 0;
  virtual int64_t num_classes() const = 0;
  /// Bytes in (C, H, W) order, shape().numel() of them; valid as long as the data set. `index` is
  /// not checked.
  virtual std::span<const uint8_t> image(int64_t index) const = 0;
};

}  // namespace lockstep::inline internal
