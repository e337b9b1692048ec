#include "lockstep/base/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

namespace lockstep::inline internal {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

UniqueFd make_sealed_memory(const char* name, size_t bytes) {
  UniqueFd memory(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool allocated =
      memory && (bytes == 0 || ::fallocate(memory.get(), 0, 0, static_cast<off_t>(bytes)) == 0);
  if (!allocated || ::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    return UniqueFd();
  }
  return memory;
}

bool is_sealed_memory(int memory, size_t bytes) {
  struct stat status {};
  return ::fstat(memory, &status) == 0 && std::cmp_greater_equal(status.st_size, bytes) &&
         (::fcntl(memory, F_GET_SEALS) & kSeals) == kSeals;
}

}  // namespace lockstep::inline internal
