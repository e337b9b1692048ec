#pragma once
// Data sets of text in images, as a configuration names them.

#include <memory>

#include "lockstep/data/ocr_batch.h"
#include "lockstep/train/config/config.h"

namespace lockstep {

/// What a batch of such a model has: in training and in evaluation.
OcrColumns text_columns(ModelType type, bool training);

/// The records of dataset.type, transformed as dataset.transform_pipeline says. `training`:
/// polygons follow the image when it is resized. Which records are used, in which order they stand
/// and what transforms draw depends on `seed` alone.
/// Errors: kInvalidArgument, kNotFound, kCorrupt, naming file and line.
std::shared_ptr<const TextSamples> make_text_samples(const DatasetConfig& config, int64_t seed,
                                                     bool training);

}  // namespace lockstep
