#pragma once
// A stored zip archive in memory, as written by torch.save.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/crc32.h"

namespace lockstep::inline internal {

inline void put_number(std::string& bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(i < 8 ? value >> (8 * i) & 0xff : 0);
}

/// Checksums are 0, which no reader here checks, or those of the bytes.
inline std::string zip_file(const std::vector<std::pair<std::string, std::string>>& members,
                            uint64_t method = 0, bool has_sums = false) {
  std::string file, directory;
  for (const auto& [name, bytes] : members) {
    const uint64_t at = file.size();
    const uint32_t sum = has_sums ? crc32_of(bytes) : 0;
    file += "PK\x03\x04";
    put_number(file, 20, 2);
    put_number(file, 0, 2);
    put_number(file, method, 2);
    put_number(file, 0, 4);
    put_number(file, sum, 4);
    put_number(file, bytes.size(), 4);
    put_number(file, bytes.size(), 4);
    put_number(file, name.size(), 2);
    put_number(file, 0, 2);
    file += name + bytes;
    directory += "PK\x01\x02";
    put_number(directory, 20, 2);
    put_number(directory, 20, 2);
    put_number(directory, 0, 2);
    put_number(directory, method, 2);
    put_number(directory, 0, 4);
    put_number(directory, sum, 4);
    put_number(directory, bytes.size(), 4);
    put_number(directory, bytes.size(), 4);
    put_number(directory, name.size(), 2);
    put_number(directory, 0, 12);
    put_number(directory, at, 4);
    directory += name;
  }
  const uint64_t at = file.size();
  file += directory + "PK\x05\x06";
  put_number(file, 0, 4);
  put_number(file, members.size(), 2);
  put_number(file, members.size(), 2);
  put_number(file, directory.size(), 4);
  put_number(file, at, 4);
  put_number(file, 0, 2);
  return file;
}

}  // namespace lockstep::inline internal
