#pragma once
// The way from a decoded picture of any size to the network's input.

#include <functional>
#include <iterator>
#include <opencv2/core.hpp>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/data/transforms.h"
#include "lockstep/ocr/transforms/decode.h"

namespace lockstep::inline internal {

/// A picture after all steps but those on floats.
struct MadePicture {
  cv::Mat pixels;                  ///< H x W, 8-bit RGB; may be part of a larger matrix.
  std::optional<cv::Rect> erased;  ///< By RandomErasing.
};

/// Decodes the part of a picture that `choose` wants; see ocr::decode_part().
///
/// If the first step is RandomResizedCrop, its part alone is decoded, with the same result. With
/// `reduced` pictures are decoded at 1/2, 1/4 or 1/8 of their size, faster and with other pixels.
/// That size is at least the one that RandomResizedCrop or Resize makes of them. Data below the
/// part are then not read.
using Undecoded = std::function<cv::Mat(const ocr::ChoosePart& choose)>;
/// A part of `picture`, which is 8-bit RGB.
Undecoded already_decoded(cv::Mat picture);

/// Pictures of one size.
struct PicturesAlike {
  cv::Size size;
  int64_t channels = 3;  ///< Of the network's input. 1: the first one of grey pictures.
};

/// Errors: kInvalidArgument if RandomCrop is larger than its picture with the padding, or Resize
/// makes more than ocr::kMaxImagePixels. `size`: of all pictures; behind a registered step it is
/// not known until another step fixes it.
void check_sizes(const std::vector<PictureStep>& steps, cv::Size size);

/// Immutable: any number of threads may use it.
///
/// The random values of a sample depend on (seed, epoch, key) alone; see BatchRows. They are words
/// 0, 1, .. of the Philox stream of these three. The steps take them in their order. So a picture
/// is the same on any rank and thread, and after a resume. RandomCrop, RandomHorizontalFlip and
/// Normalize give the bits of ImageTransform.
class PicturePipeline {
 public:
  /// Errors: kInvalidArgument if Normalize is followed by another step than RandomErasing, or
  /// RandomErasing by any.
  /// `reduced`: see Undecoded.
  /// `pictures`: all have one size. Errors: also those of check_sizes(); with one channel
  /// kInvalidArgument if RandomErasing has several values, or a registered step is among the steps.
  PicturePipeline(std::vector<PictureStep> steps, uint64_t seed, bool reduced = false,
                  const std::optional<PicturesAlike>& pictures = std::nullopt);

  /// The size of every result; none if it depends on the picture. A registered step is expected to
  /// keep the size.
  std::optional<cv::Size> output() const { return output_; }

  /// `picture`: 8-bit RGB. Errors: kInvalidArgument if RandomCrop is larger than the padded
  /// picture; those of apply_own_step(); TransformFailed, with the step's name, for any other
  /// exception of a step, and if a registered one changed a size that none behind it fixes.
  MadePicture apply(const cv::Mat& picture, int64_t epoch, int64_t key) const;
  /// The same of a picture that is not decoded yet.
  MadePicture apply(const Undecoded& picture, int64_t epoch, int64_t key) const;
  /// The same with other random numbers than those of (seed, epoch, key).
  MadePicture apply(const Undecoded& picture, RandomNumbers& random) const;

  /// Whether pictures are decoded at a smaller size: see Undecoded.
  bool reduces() const { return reduced_; }
  /// Whether a result's pixels are all of it: no step erases a part of the floats.
  bool ends_with_bytes() const { return !erasing_; }
  /// The float that each byte of a channel stands for.
  const ByteTables& tables() const { return tables_; }
  /// Of the network's input: 3, or 1 of grey pictures.
  int64_t channels() const { return std::ssize(tables_); }

  /// Writes the floats of a result, (channels(), H, W).
  void write(const MadePicture& made, float* planes) const;

 private:
  std::vector<PictureStep> steps_;
  uint64_t seed_;
  bool reduced_;
  std::optional<cv::Size> output_;
  ByteTables tables_;
  std::optional<RandomErasing> erasing_;
};

/// Of images of one shape: ImageTransform where it takes the steps. Of other pictures always a
/// PicturePipeline.
using ImagePipeline = std::variant<ImageTransform, PicturePipeline>;

/// As the configuration names a step; Normalize for NormalizeImage, too.
std::string_view picture_step_name(const PictureStep& step);

}  // namespace lockstep::inline internal
