#pragma once

#include <cstddef>
#include <memory>
#include <string>

struct evp_md_ctx_st;

namespace lockstep {

/// SHA-256 of bytes that come in parts, such as those of a file while it is written.
class Sha256 {
 public:
  Sha256();
  void update(const void* data, size_t size);
  /// In hex digits. Once, at the end.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> state_;
};

}  // namespace lockstep
