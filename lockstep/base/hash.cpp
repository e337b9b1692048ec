#include "lockstep/base/hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// 32 bytes.
constexpr std::string_view kPolyKey = "Lockstep checkpoint, file digest";

bool begin_poly1305(EVP_MD_CTX* state) {
  const auto* const key = reinterpret_cast<const uint8_t*>(kPolyKey.data());
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> held(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_POLY1305, nullptr, key, kPolyKey.size()),
      EVP_PKEY_free);
  return held && EVP_DigestSignInit(state, nullptr, nullptr, nullptr, held.get()) == 1;
}

bool begin(EVP_MD_CTX* state, HashKind kind) {
  if (state == nullptr) return false;
  if (kind == HashKind::kPoly1305) return begin_poly1305(state);
  return EVP_DigestInit_ex(state, kind == HashKind::kMd5 ? EVP_md5() : EVP_sha256(), nullptr) == 1;
}

}  // namespace

std::string_view to_string(HashKind kind) {
  switch (kind) {
    case HashKind::kMd5:
      return "MD5";
    case HashKind::kSha256:
      return "SHA-256";
    case HashKind::kPoly1305:
      return "Poly1305";
  }
  return "";
}

bool is_available(HashKind kind) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> state(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  return begin(state.get(), kind);
}

Hash::Hash(HashKind kind) : state_(EVP_MD_CTX_new(), EVP_MD_CTX_free), kind_(kind) {
  if (begin(state_.get(), kind)) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("this OpenSSL lacks {}", to_string(kind)));
}

void Hash::update(const void* data, size_t size) {
  if (kind_ == HashKind::kPoly1305) {
    EVP_DigestSignUpdate(state_.get(), data, size);
  } else {
    EVP_DigestUpdate(state_.get(), data, size);
  }
}

std::string Hash::hex() {
  uint8_t bytes[EVP_MAX_MD_SIZE];
  size_t size = sizeof bytes;
  if (kind_ == HashKind::kPoly1305) {
    EVP_DigestSignFinal(state_.get(), bytes, &size);
  } else {
    unsigned written = 0;
    EVP_DigestFinal_ex(state_.get(), bytes, &written);
    size = written;
  }
  return hex_digits({bytes, size});
}

uint64_t first_64_bits(const std::string& hex) {
  return std::stoull(hex.substr(0, 16), nullptr, 16);
}

uint64_t hash_of(std::string_view bytes) {
  Hash hash;
  hash.update(bytes.data(), bytes.size());
  return first_64_bits(hash.hex());
}

FileHash hash_file(int fd, const std::string& name, HashKind kind) {
  Hash hash(kind);
  FileHash file;
  std::vector<char> buffer(1 << 20);
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw io_error("read " + name);
    if (got == 0) break;
    hash.update(buffer.data(), static_cast<size_t>(got));
    file.bytes += got;
  }
  file.hex = hash.hex();
  return file;
}

}  // namespace lockstep::inline internal
