#include "lockstep/base/hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "lockstep/error.h"

namespace lockstep {

Hash::Hash(HashKind kind) : state_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  const EVP_MD* const digest = kind == HashKind::kMd5 ? EVP_md5() : EVP_sha256();
  if (!state_ || EVP_DigestInit_ex(state_.get(), digest, nullptr) != 1) {
    throw Error(ErrorCode::kUnavailable, "this OpenSSL lacks a digest");
  }
}

void Hash::update(const void* data, size_t size) {
  EVP_DigestUpdate(state_.get(), data, size);
}

std::string Hash::hex() {
  uint8_t bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(state_.get(), bytes, &size);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

uint64_t first_64_bits(const std::string& hex) {
  return std::stoull(hex.substr(0, 16), nullptr, 16);
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

}  // namespace lockstep
