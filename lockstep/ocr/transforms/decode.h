#pragma once

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Reads and decodes: `image`, `raw_size` and, with keep_ori, `original`. From `encoded`, or,
/// where that is empty, the file `source`. EXIF's orientation is followed unless ignored.
/// Errors: kNotFound, kIo, kCorrupt (no image, cut off, damaged, too large, smaller than
/// `min_side`).
void decode_image(const DecodeImage& options, Sample& sample);

}  // namespace lockstep::ocr
