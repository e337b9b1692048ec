#pragma once
// Memory that several processes of one host map, without a name anywhere.

#include <cstddef>
#include <cstdint>
#include <string>

#include "lockstep/base/rounding.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/native/shm/door.h"

namespace lockstep::shm {

inline constexpr int64_t kHugePage = int64_t{2} << 20;

/// A memfd of `bytes` zeros; pages come into being when touched. Errors: kUnavailable.
UniqueFd make_memory(int64_t bytes);
/// Another process's memory, if it is of this user. Errors: kUnavailable, says why it is refused.
UniqueFd open_memory(const RemoteFd& remote);
/// Takes the pages of [offset, offset + bytes) from the kernel now, so that a lack of memory is an
/// error here and not a SIGBUS later. Pages come from the memory nearest to the calling thread.
/// Errors: kUnavailable.
void commit_memory(int fd, int64_t offset, int64_t bytes);

/// One mapping, unmapped at the end; the memory lives on while others map it.
class Mapping {
 public:
  Mapping() = default;
  /// Starts at a multiple of 2 MiB and asks for huge pages. Errors: kUnavailable.
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
