#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <optional>
#include <span>

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Reads and decodes: sets `image`, `raw_size` and, with keep_ori, `original`. Reads `encoded`, or,
/// if that is empty, the file `source`. Follows EXIF's orientation unless it is ignored. Errors:
/// kNotFound, kIo, kCorrupt (no image, cut off, damaged, too large, smaller than `min_side`).
void decode_image(const DecodeImage& options, Sample& sample);

// Decodes JPEGs by libjpeg directly. OpenCV uses the same library, but hides damage in the data,
// copies every row, and has no RGB.

/// The pixels of a JPEG, upright as its camera was held. They equal those of cv::imdecode(), bit
/// for bit, in the requested order of channels. Empty for an image of four inks, which OpenCV
/// decodes.
///
/// Errors: kCorrupt with libjpeg's message, even for faults after which it would continue: an
/// invalid code, missing data or left-over data. Zeros, or up to 4 bytes, which some cameras leave,
/// are accepted. This detects one in seven single-bit errors; the others yield another valid image,
/// which no decoder can detect. `bytes` have passed image_fault().
std::optional<cv::Mat> decode_jpeg(std::span<const uint8_t> bytes, ImageMode mode,
                                   bool ignore_orientation);

}  // namespace lockstep::ocr
