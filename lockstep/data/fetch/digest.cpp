#include <fcntl.h>

#include "lockstep/base/hash.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/data/fetch/download.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

std::string digest_of(const std::filesystem::path& path, HashKind kind) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw io_error("open " + path.string());
  return hash_file(file.get(), path.string(), kind).hex;
}

}  // namespace

std::string md5_of(const std::filesystem::path& path) {
  return digest_of(path, HashKind::kMd5);
}

std::string sha256_of(const std::filesystem::path& path) {
  return digest_of(path, HashKind::kSha256);
}

}  // namespace lockstep
