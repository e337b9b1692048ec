#include "lockstep/base/crc32.h"

#include <array>
#include <cstring>

namespace lockstep::inline internal {
namespace {

constexpr size_t kAtOnce = 8;
using Crc32Tables = std::array<std::array<uint32_t, 256>, kAtOnce>;

/// Table k is for a byte with k others behind it. Source: M. Kounavis and F. Berry, "Novel
/// table lookup-based algorithms for high-performance CRC generation", 2008.
/// `polynomial`: with its bits reversed.
constexpr Crc32Tables make_crc32_tables(uint32_t polynomial) {
  Crc32Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ polynomial : crc >> 1;
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < kAtOnce; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = crc >> 8 ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}

constexpr Crc32Tables kZipTables = make_crc32_tables(0xedb88320);
constexpr Crc32Tables kCastagnoliTables = make_crc32_tables(0x82f63b78);

uint32_t crc_by(const Crc32Tables& tables, std::string_view bytes, uint32_t before) {
  const char* next = bytes.data();
  size_t left = bytes.size();
  uint32_t crc = ~before;
  for (; left >= kAtOnce; left -= kAtOnce, next += kAtOnce) {
    uint32_t low = 0, high = 0;
    std::memcpy(&low, next, 4);
    std::memcpy(&high, next + 4, 4);
    low ^= crc;
    crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
          tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
          tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
  }
  for (; left > 0; --left, ++next) {
    crc = crc >> 8 ^ tables[0][(crc ^ static_cast<uint8_t>(*next)) & 0xff];
  }
  return ~crc;
}

}  // namespace

uint32_t crc32_of(std::string_view bytes, uint32_t before) {
  return crc_by(kZipTables, bytes, before);
}

uint32_t crc32c_of(std::string_view bytes, uint32_t before) {
  return crc_by(kCastagnoliTables, bytes, before);
}

}  // namespace lockstep::inline internal
