#pragma once
// Labelled images as the tensors of a batch: small images in memory, and mixed ones.

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/data/dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/mixing.h"
#include "lockstep/data/transforms.h"
#include "lockstep/data/usable_samples.h"

namespace lockstep::inline internal {

/// For registered transforms among the steps of images in memory.
struct ImageFaults {
  std::string data = "the data set";  ///< For errors, such as "data/cifar10: image 17: ...".
  BadSample bad = BadSample::kReplaced;
  uint64_t seed = 0;  ///< Of replacements.
  int64_t among = 0;  ///< Replacements are of the first so many images; 0: of all.
};

/// Batches of `data`, transformed; the one target is the labels, (N) int64. Errors:
/// kInvalidArgument (the transform is for another image shape).
///
/// An image that a registered transform refuses is treated as an unusable picture: see
/// picture_batches() (pictures/picture_batches.h). Errors of a batch: kCorrupt if an image and its
/// ten replacements are unusable; TransformFailed, naming the image.
std::unique_ptr<const BatchMaker> image_batches(std::shared_ptr<const ImageDataset> data,
                                                ImageTransform transform, ImageFaults faults = {});

struct MixedOptions {
  Mixing mixing;
  uint64_t seed = 0;
  /// Parts of equal size that a batch consists of, one for each of a rank's virtual ranks. Images
  /// are mixed within a part, so that the number of ranks does not show.
  int parts = 1;
  int64_t num_classes = 0;
};

/// The batches of `maker`, of images (N, C, H, W) float32 and labels (N) int64, with images mixed;
/// see mix(). The one target is then (N, num_classes) float32: the share of each class.
std::unique_ptr<const BatchMaker> mixed_batches(std::unique_ptr<const BatchMaker> maker,
                                                const MixedOptions& options);

}  // namespace lockstep::inline internal
