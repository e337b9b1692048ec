#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "lockstep/base/unique_fd.h"
#include "lockstep/data/fetch/download.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

std::string digest_of(const std::filesystem::path& path, const EVP_MD* kind) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw io_error("open " + path.string());
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), kind, nullptr) != 1) {
    throw Error(ErrorCode::kUnavailable, "this OpenSSL lacks a digest");
  }
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw io_error("read " + path.string());
    if (got == 0) break;
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<size_t>(got));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &size);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace

std::string md5_of(const std::filesystem::path& path) {
  return digest_of(path, EVP_md5());
}

std::string sha256_of(const std::filesystem::path& path) {
  return digest_of(path, EVP_sha256());
}

}  // namespace lockstep
