#pragma once
// Memory that several processes of one host map, without a name in any file system.

#include <cstddef>
#include <cstdint>

#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/native/shm/fd_server.h"

namespace lockstep::shm {

inline constexpr int64_t kHugePage = int64_t{2} << 20;

/// A memfd of `bytes` zeros; pages are allocated on first access. Errors: kUnavailable.
UniqueFd make_memory(int64_t bytes);
/// Another process's memory, if it is of this user. Errors: kUnavailable, with the reason of the
/// refusal.
UniqueFd open_memory(const RemoteFd& remote);
/// Allocates the pages of [offset, offset + bytes) now, so that a lack of memory is an error here
/// and not a SIGBUS later. Pages come from the memory nearest to the calling thread. Errors:
/// kUnavailable.
void commit_memory(int fd, int64_t offset, int64_t bytes);

/// One mapping, unmapped by the destructor; the memory lives on while others map it.
class Mapping {
 public:
  Mapping() = default;
  /// Starts at a multiple of 2 MiB and requests huge pages. Errors: kUnavailable.
  Mapping(int fd, int64_t bytes);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace lockstep::shm
