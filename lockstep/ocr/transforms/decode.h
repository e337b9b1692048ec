#pragma once

#include <cstdint>
#include <functional>
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

/// A part of a picture, and how much smaller it may be decoded.
struct PicturePart {
  cv::Rect part;            ///< In pixels of the whole picture, within it.
  int denominator = 1;      ///< 1, 2, 4 or 8: its sides are divided by it.
  bool checks_rest = true;  ///< Data of the rows below are read, so that damage there is found.
};
/// The part that is wanted of a picture of this size.
using ChoosePart = std::function<PicturePart(cv::Size)>;

/// A part of an RGB picture, orientation ignored, as `choose` wants it; may be part of a larger
/// matrix. With the denominator 1 its pixels are those of the whole picture, bit for bit.
///
/// Of a JPEG only the rows and columns around the part are made from its coefficients, and
/// libjpeg's inverse DCT makes the smaller picture, of rounded-up sides. Other formats are decoded
/// whole, and not smaller. Errors: kCorrupt as decode_image().
cv::Mat decode_part(std::span<const uint8_t> bytes, const ChoosePart& choose);

}  // namespace lockstep::ocr
