#pragma once
// The digests of a checkpoint's files: computed while a file is written, checked while it is read.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "lockstep/base/hash.h"
#include "lockstep/checkpoint/byte_source.h"

namespace lockstep::inline internal {

/// Length and digest of a file of the checkpoint, to detect damage.
struct FileDigest {
  int64_t bytes = 0;
  std::string kind;  ///< "poly1305", or "sha256" as in format 2.
  std::string hex;

  bool operator==(const FileDigest&) const = default;
};

/// The names of digests in state.json; the first is that of new files.
inline constexpr const char* kPoly1305 = "poly1305";
inline constexpr const char* kSha256 = "sha256";

/// kPoly1305, or kSha256 where OpenSSL is restricted to FIPS 140.
std::string new_digest_kind();

/// The digest of a file whose bytes come in order.
class FileDigester {
 public:
  /// `kind`: one of the names above. Errors: kUnavailable if this OpenSSL lacks it.
  explicit FileDigester(const std::string& kind = new_digest_kind());
  void update(const void* data, size_t size);
  /// Once, after the last update.
  FileDigest digest();

 private:
  Hash hash_;
  FileDigest digest_;
};

/// Errors: kNotFound, kIo.
FileDigest digest_file(const std::filesystem::path& path, const std::string& kind = kSha256);

/// Errors: kCorrupt, which names `file`, if its bytes, or their number, are not those saved.
void check_bytes(const std::string& file, int64_t bytes, const FileDigest& saved);
void check_digest(const std::string& file, const FileDigest& found, const FileDigest& saved);
/// The same for all bytes of `file`, which are read through a small buffer. Errors: kIo, too.
void check_saved(const ByteSource& file, const FileDigest& saved);

}  // namespace lockstep::inline internal
