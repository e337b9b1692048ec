#include "lockstep/checkpoint/file_digest.h"

#include <fmt/format.h>

#include "lockstep/base/file.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

HashKind hash_kind(const std::string& kind) {
  return kind == kPoly1305 ? HashKind::kPoly1305 : HashKind::kSha256;
}

}  // namespace

std::string new_digest_kind() {
  static const bool fast = is_available(HashKind::kPoly1305);
  return fast ? kPoly1305 : kSha256;
}

FileDigester::FileDigester(const std::string& kind)
    : hash_(hash_kind(kind)), digest_{0, kind, {}} {}

void FileDigester::update(const void* data, size_t size) {
  hash_.update(data, size);
  digest_.bytes += static_cast<int64_t>(size);
}

FileDigest FileDigester::digest() {
  digest_.hex = hash_.hex();
  return digest_;
}

FileDigest digest_file(const std::filesystem::path& path, const std::string& kind) {
  const UniqueFd fd = open_to_read(path);
  const FileHash hash = hash_file(fd.get(), path.string(), hash_kind(kind));
  return {hash.bytes, kind, hash.hex};
}

void check_bytes(const std::string& file, int64_t bytes, const FileDigest& saved) {
  if (bytes == saved.bytes) return;
  throw Error(ErrorCode::kCorrupt,
              fmt::format("{}: {} bytes, {} were saved", file, bytes, saved.bytes));
}

void check_digest(const std::string& file, const FileDigest& found, const FileDigest& saved) {
  check_bytes(file, found.bytes, saved);
  if (found == saved) return;
  throw Error(ErrorCode::kCorrupt, fmt::format("{}: the bytes are not those saved ({} differs)",
                                               file, to_string(hash_kind(saved.kind))));
}

void check_saved(const ByteSource& file, const FileDigest& saved) {
  check_bytes(file.name(), static_cast<int64_t>(file.size()), saved);
  FileDigester digester(saved.kind);
  file.read_pieces(0, file.size(),
                   [&](std::string_view piece) { digester.update(piece.data(), piece.size()); });
  check_digest(file.name(), digester.digest(), saved);
}

}  // namespace lockstep::inline internal
