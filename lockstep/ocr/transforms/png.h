#pragma once
// The chunks of a PNG file, looked at before libpng decodes them, which prints what it does not
// like to standard error. Source: W3C, "Portable Network Graphics (PNG) Specification", 5.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::ocr {

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
