#pragma once
// Checksums of 32 bits, as file formats of others have them.

#include <cstdint>
#include <string_view>

namespace lockstep::inline internal {

/// CRC-32, the checksum of zip and PNG. `before`: that of the bytes in front of these.
uint32_t crc32_of(std::string_view bytes, uint32_t before = 0);

/// CRC-32C (Castagnoli), the checksum of TFRecord files. Source: RFC 3720, appendix B.4.
uint32_t crc32c_of(std::string_view bytes, uint32_t before = 0);

}  // namespace lockstep::inline internal
