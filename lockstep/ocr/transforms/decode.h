#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// More pixels than any camera makes; an image that claims more is refused before it is decoded
/// (PNG, JPEG) or, of other formats, by OpenCV's own limit of 2^30.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 28;

/// Why these bytes cannot be the whole of an image that may be decoded; empty: they may be. Looks
/// at the frame of PNG and JPEG alone. OpenCV decodes a JPEG that is cut off and leaves the rest
/// grey, which would be trained on.
std::string image_fault(std::span<const uint8_t> bytes);

/// Reads and decodes: `image`, `raw_size` and, with keep_ori, `original`. From `encoded`, or,
/// where that is empty, the file `source`. EXIF's orientation is followed unless ignored.
/// Errors: kNotFound, kIo, kCorrupt (no image, cut off, too large, smaller than `min_side`).
void decode_image(const DecodeImage& options, Sample& sample);

}  // namespace lockstep::ocr
