#pragma once
// What stands around the pixels of an image file, looked at before anything is decoded.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::ocr {

/// More pixels than any camera makes; an image that claims more is refused before it is decoded
/// (PNG, JPEG, BMP) or, of other formats, by OpenCV's own limit of 2^30.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 28;

/// Why these bytes cannot be the whole of an image that may be decoded; empty: they may be. Looks
/// at the frame of PNG, JPEG and BMP alone. Decoders go on with a JPEG that is cut off and leave
/// the rest grey, which would be trained on.
std::string image_fault(std::span<const uint8_t> bytes);

bool is_jpeg(std::span<const uint8_t> bytes);

/// How the camera was held, EXIF's 1 .. 8 (1: upright), from the first application segment 1 of a
/// JPEG, as OpenCV looks for it; 1 where it is not said, or not well. Source: CIPA DC-008 (EXIF
/// 2.32), 4.6.4 and 4.7.2.
int exif_orientation(std::span<const uint8_t> jpeg);

// The chunks of a PNG file, looked at before libpng decodes them, which prints what it does not
// like to standard error. Source: W3C, "Portable Network Graphics (PNG) Specification", 5.

bool is_png(std::span<const uint8_t> bytes);

/// Why these bytes, which is_png() knows, are no whole file: cut off, or a chunk that pixels depend
/// on with another checksum than its own; empty: they may be. What stands behind the end is not
/// looked at. Cost: that of a CRC-32 of the file.
std::string png_fault(std::span<const uint8_t> bytes);

/// The file with the chunks alone that decide what OpenCV makes of it: colour profiles, gamma,
/// texts and times are left out. Empty where there is nothing to leave out. For bytes without
/// png_fault().
std::vector<uint8_t> plain_png(std::span<const uint8_t> bytes);

}  // namespace lockstep::ocr
