#include "lockstep/comm/native/shm/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lockstep/base/namespaces.h"
#include "lockstep/base/rounding.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::shm {
namespace {

Error unavailable(const std::string& doing) {
  return Error(ErrorCode::kUnavailable, io_error("shared memory: " + doing).what());
}

}  // namespace

UniqueFd make_memory(int64_t bytes) {
  UniqueFd fd(::memfd_create("lockstep", MFD_CLOEXEC));
  if (!fd) throw unavailable("memfd_create");
  if (::ftruncate(fd.get(), bytes) != 0) {
    throw unavailable(fmt::format("{} of it", format_bytes(bytes)));
  }
  return fd;
}

UniqueFd open_memory(const RemoteFd& remote) {
  UniqueFd opened = open_remote(remote, O_RDWR);
  struct stat memory {};
  // Root could open other users' memory, but they could not open root's: both directions must work.
  if (opened && (::fstat(opened.get(), &memory) != 0 || !is_own_user(memory.st_uid))) {
    opened.reset();
    errno = EPERM;
  }
  if (opened) return opened;
  const int reason = errno;
  const char* hint = reason == EPERM ? " (are the ranks of one user?)"
                     : reason == ECONNREFUSED
                         ? " (does that rank live, and in the same network namespace?)"
                         : "";
  const auto what = fmt::format("open descriptor {} of process {}", remote.fd, remote.pid);
  errno = reason;
  throw Error(ErrorCode::kUnavailable, unavailable(what).what() + std::string(hint));
}

void commit_memory(int fd, int64_t offset, int64_t bytes) {
  while (bytes > 0 && ::fallocate(fd, 0, offset, bytes) != 0) {
    if (errno == EINTR) continue;
    throw unavailable(fmt::format("no memory for {}", format_bytes(bytes)));
  }
}

Mapping::Mapping(int fd, int64_t bytes) : bytes_(bytes) {
  // Reserve more, then map at the first multiple of 2 MiB in it and release the rest.
  const auto reserved = static_cast<size_t>(round_up(bytes, 4096) + kHugePage);
  void* const place =
      ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) throw unavailable("no address space for " + format_bytes(bytes));
  auto* const low = static_cast<std::byte*>(place);
  const auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(low));
  const int64_t before = round_up(address, kHugePage) - address;
  const int64_t used = round_up(bytes, 4096);
  data_ = low + before;
  const bool mapped = ::mmap(data_, static_cast<size_t>(used), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
  const int reason = errno;
  if (before > 0) ::munmap(low, static_cast<size_t>(before));
  if (before < kHugePage) ::munmap(data_ + used, static_cast<size_t>(kHugePage - before));
  if (!mapped) {
    ::munmap(data_, static_cast<size_t>(used));
    errno = reason;
    throw unavailable("mmap of " + format_bytes(bytes));
  }
  // A hint: kernels without huge pages for shared memory refuse it, and 4 KiB pages serve.
  ::madvise(data_, static_cast<size_t>(used), MADV_HUGEPAGE);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(round_up(bytes_, 4096)));
}

}  // namespace lockstep::shm
