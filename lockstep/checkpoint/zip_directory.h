#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/checkpoint/byte_source.h"

namespace lockstep {

/// A member of a zip archive whose bytes stand in the file as they are.
struct ZipMember {
  std::string name;
  uint64_t offset = 0;  ///< Of its bytes in the file.
  uint64_t bytes = 0;
};

/// The members of an archive (zip64 too) that holds them uncompressed, as torch.save writes it;
/// each lies within the file. Memory: in proportion to the directory, of at most 64 MiB. Errors:
/// kCorrupt naming the file, the member and the reason; compressed and encrypted members are such a
/// reason. Source: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3 to 4.5.
std::vector<ZipMember> read_zip_directory(const ByteSource& file);

}  // namespace lockstep
