#pragma once
// Batches whose images are mixed.

#include <memory>

#include "lockstep/data/loader.h"
#include "lockstep/data/mixing.h"

namespace lockstep {

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

}  // namespace lockstep
