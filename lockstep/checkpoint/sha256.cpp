#include "lockstep/checkpoint/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

namespace lockstep {

Sha256::Sha256() : state_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  EVP_DigestInit_ex(state_.get(), EVP_sha256(), nullptr);
}

void Sha256::update(const void* data, size_t size) {
  EVP_DigestUpdate(state_.get(), data, size);
}

std::string Sha256::hex() {
  uint8_t bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(state_.get(), bytes, &size);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

}  // namespace lockstep
