#pragma once
// Checks the frame around the pixels of an image file before it is decoded.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::ocr {

/// More pixels than any camera makes. A larger image is refused before it is decoded (PNG, JPEG,
/// BMP) or, in other formats, by OpenCV's own limit of 2^30.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 28;

/// The reason why these bytes cannot be a whole decodable image; empty: they may be. Checks only
/// the frame of PNG, JPEG and BMP. Decoders accept a truncated JPEG and leave the rest grey, which
/// would spoil training.
std::string image_fault(std::span<const uint8_t> bytes);

bool is_jpeg(std::span<const uint8_t> bytes);

/// The camera's orientation, EXIF's 1 .. 8 (1: upright), from the first application segment 1 of a
/// JPEG, as in OpenCV. It is 1 if missing or invalid. Source: CIPA DC-008 (EXIF 2.32), 4.6.4 and
/// 4.7.2.
int exif_orientation(std::span<const uint8_t> jpeg);

// Checks the chunks of a PNG file before libpng decodes them, which prints faults to standard
// error. Source: W3C, "Portable Network Graphics (PNG) Specification", 5.

bool is_png(std::span<const uint8_t> bytes);

/// The reason why these bytes of a PNG are no whole file: it is truncated, or a chunk that affects
/// pixels has a wrong checksum. Empty: they may be. Bytes behind the end are not checked. Cost:
/// that of a CRC-32 of the file.
std::string png_fault(std::span<const uint8_t> bytes);

/// The file with only the chunks that affect OpenCV's result: without colour profiles, gamma, texts
/// and times. Empty if there is nothing to remove. For bytes without png_fault().
std::vector<uint8_t> plain_png(std::span<const uint8_t> bytes);

}  // namespace lockstep::ocr
