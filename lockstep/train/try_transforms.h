#pragma once
// For --check: a fault of a transform of one's own shows before training.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// The sections whose data are there.
struct TriedSections {
  bool train = false;
  bool eval = false;
};
/// Makes the data of section `train` or `eval` of a configuration.
using MakeBatches =
    std::function<std::unique_ptr<const BatchMaker>(const Config& config, bool training)>;

/// Of each section whose transform_pipeline has a registered transform: makes the first sample,
/// twice. Returns a line for each that is unusable. In training ten others may replace it; without
/// a usable one the batch is an error.
///
/// Errors begin with the place and the key of the pipeline: kInvalidArgument if a transform fails,
/// or if the two differ; those of the batch. An error of the batch begins with the place and the
/// key of the data set if it comes without registered transforms, too: pictures are missing.
std::vector<std::string> try_own_transforms(const Config& config, TriedSections sections,
                                            const MakeBatches& make);

}  // namespace lockstep::inline internal
