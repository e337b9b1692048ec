#pragma once
// Data sets of text in images, as configured.

#include <memory>

#include "lockstep/data/ocr_batch.h"
#include "lockstep/train/config/config.h"

namespace lockstep {

/// The columns of such a model's batches, in training and in evaluation.
OcrColumns text_columns(ModelType type, bool training);

/// The records of dataset.type with the transforms of dataset.transform_pipeline. `training`:
/// polygons follow the image when it is resized. The records, their order and the random numbers of
/// transforms depend on `seed` alone.
/// Errors: kInvalidArgument, kNotFound, kCorrupt, naming file and line.
std::shared_ptr<const TextSamples> make_text_samples(const DatasetConfig& config, int64_t seed,
                                                     bool training);

}  // namespace lockstep
