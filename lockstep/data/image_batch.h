#pragma once
// Labelled images as the tensors of a batch.

#include <memory>

#include "lockstep/data/dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/transforms.h"

namespace lockstep {

/// Batches of `data`, transformed; the one target is the labels, (N) int64. Errors:
/// kInvalidArgument (the transform is for another image shape).
std::unique_ptr<const BatchMaker> image_batches(std::shared_ptr<const ImageDataset> data,
                                                ImageTransform transform);

}  // namespace lockstep
