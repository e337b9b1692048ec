#pragma once
// The checksum of zip archives.

#include <cstdint>
#include <string_view>

namespace lockstep::inline internal {

/// CRC-32 with the polynomial 0xedb88320, as zip and PNG have it. `before`: that of the bytes in
/// front of these.
uint32_t crc32_of(std::string_view bytes, uint32_t before = 0);

}  // namespace lockstep::inline internal
