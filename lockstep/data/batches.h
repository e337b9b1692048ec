#pragma once
// Labelled images as the tensors of a batch: small images in memory, and mixed ones.

#include <cstdint>
#include <memory>

#include "lockstep/batch.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/mixing.h"
#include "lockstep/data/transforms.h"

namespace lockstep::inline internal {

/// Batches of `data`, transformed; the one target is the labels, (N) int64. Errors:
/// kInvalidArgument (the transform is for another image shape).
std::unique_ptr<const BatchMaker> image_batches(std::shared_ptr<const ImageDataset> data,
                                                ImageTransform transform);

struct MixedOptions {
  Mixing mixing;
  uint64_t seed = 0;
  int64_t num_classes = 0;
};

/// The batches of `maker`, of images (N, C, H, W) float32 and labels (N) int64, with images mixed;
/// see mix(). The one target is then (N, num_classes) float32: the share of each class.
std::unique_ptr<const BatchMaker> mixed_batches(std::unique_ptr<const BatchMaker> maker,
                                                const MixedOptions& options);

}  // namespace lockstep::inline internal
