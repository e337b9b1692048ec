#pragma once
// Data sets of text in images, as configured.

#include <memory>

#include "lockstep/data/ocr_batch.h"
#include "lockstep/data/pixel_form.h"
#include "lockstep/train/setup.h"

namespace lockstep::inline internal {

/// See TaskParts. `columns`: of training; evaluations have the ground truth.
/// Errors: kInvalidArgument, kNotFound, kCorrupt, naming file and line.
std::unique_ptr<const BatchMaker> make_ocr_batches(const Config& config, bool training,
                                                   PixelForm form, OcrColumns columns,
                                                   DataParts& parts);
/// `columns`: as above. `planes`: numbers for each pixel of a sample.
CheckedData check_ocr_data(const Config& config, OcrColumns columns, int64_t planes);

}  // namespace lockstep::inline internal
