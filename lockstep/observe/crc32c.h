#pragma once
// CRC-32C (Castagnoli), the checksum of TFRecord files. Source: RFC 3720, appendix B.4.

#include <cstdint>
#include <string_view>

namespace lockstep {

uint32_t crc32c(std::string_view bytes);

/// As TFRecord stores it, so that a checksum of checksums is no special case.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace lockstep
