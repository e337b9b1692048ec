#pragma once
// A stored zip archive in memory, as written by torch.save.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::inline internal {

inline void put_number(std::string& bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(i < 8 ? value >> (8 * i) & 0xff : 0);
}

/// Checksums are left 0: no reader here checks them.
inline std::string zip_file(const std::vector<std::pair<std::string, std::string>>& members,
                            uint64_t method = 0) {
  std::string file, directory;
  for (const auto& [name, bytes] : members) {
    const uint64_t at = file.size();
    file += "PK\x03\x04";
    put_number(file, 20, 2);
    put_number(file, 0, 2);
    put_number(file, method, 2);
    put_number(file, 0, 8);
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
    put_number(directory, 0, 8);
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
