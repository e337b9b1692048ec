#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/checkpoint/byte_source.h"

namespace lockstep {

/// An uncompressed member of a zip archive.
struct ZipMember {
  std::string name;
  uint64_t offset = 0;  ///< Of its bytes in the file.
  uint64_t bytes = 0;
};

/// The members of an archive (zip64 too) that holds them uncompressed, as torch.save writes it;
/// each lies within the file. Memory: in proportion to the directory, which has at most 64 MiB.
/// Errors: kCorrupt, which names the file, the member and the reason; such reasons are compressed
/// and encrypted members. Source: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3 to 4.5.
std::vector<ZipMember> read_zip_directory(const ByteSource& file);

}  // namespace lockstep
