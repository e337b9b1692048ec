#pragma once
// Digests of bytes and of files, by OpenSSL, in hex digits.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace lockstep::inline internal {

/// kPoly1305: four times as fast as SHA-256 even where the processor has instructions for that. Its
/// key is public, so it shows damage by accident and not by intent (see
/// docs/formats/checkpoint.md).
enum class HashKind : uint8_t { kMd5, kSha256, kPoly1305 };

/// "SHA-256".
std::string_view to_string(HashKind kind);
/// Whether this OpenSSL has it: one restricted to FIPS 140 lacks kPoly1305 and kMd5.
bool is_available(HashKind kind);

/// A digest of bytes that come in parts, such as those of a file while it is written.
class Hash {
 public:
  /// Errors: kUnavailable if this OpenSSL lacks it.
  explicit Hash(HashKind kind = HashKind::kSha256);
  void update(const void* data, size_t size);
  /// In hex digits. Once, after the last update.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> state_;
  HashKind kind_;
};

/// The number formed by the first 16 of such hex digits.
uint64_t first_64_bits(const std::string& hex);
/// That of the SHA-256 of `bytes`.
uint64_t hash_of(std::string_view bytes);

struct FileHash {
  int64_t bytes = 0;  ///< Number of bytes read.
  std::string hex;
};
/// The digest of a descriptor's bytes from its present position. Errors: kIo, which names `name`.
FileHash hash_file(int fd, const std::string& name, HashKind kind = HashKind::kSha256);

}  // namespace lockstep::inline internal
