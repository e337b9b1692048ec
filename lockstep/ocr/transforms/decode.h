#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <optional>
#include <span>

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Reads and decodes: `image`, `raw_size` and, with keep_ori, `original`. From `encoded`, or,
/// where that is empty, the file `source`. EXIF's orientation is followed unless ignored.
/// Errors: kNotFound, kIo, kCorrupt (no image, cut off, damaged, too large, smaller than
/// `min_side`).
void decode_image(const DecodeImage& options, Sample& sample);

// JPEGs by libjpeg itself. OpenCV decodes them by the same library, but keeps to itself that the
// data are damaged, goes through a copy of every row, and knows no RGB.

/// The pixels of a JPEG, upright as its camera was held: those of cv::imdecode(), bit for bit, in
/// the order of channels that was asked for. Nothing for one of four inks, which is left to OpenCV.
///
/// Errors: kCorrupt with what libjpeg says, also of data that it could go on behind: a code that
/// does not exist, data that end too early or are left over (but for zeros, or up to 4 bytes, which
/// some cameras leave). Of single bits that are turned over, that finds one in seven: the rest make
/// another image, and no decoder can tell. `bytes` have passed image_fault().
std::optional<cv::Mat> decode_jpeg(std::span<const uint8_t> bytes, ImageMode mode,
                                   bool ignore_orientation);

}  // namespace lockstep::ocr
