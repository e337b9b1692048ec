#include "lockstep/launch/agent/log_space.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "lockstep/base/unique_fd.h"

namespace lockstep {
namespace {

bool is_full(const std::string& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0 || disk.f_blocks == 0) return false;
  return (::geteuid() == 0 ? disk.f_bfree : disk.f_bavail) == 0;
}

}  // namespace

bool ranks_write_files(const RunOptions& options, int local_size) {
  for (int local_rank = 0; local_rank < local_size; ++local_rank) {
    const Streams redirected = options.redirects.of(local_rank);
    const Streams teed = options.tee.of(local_rank);
    if ((redirected.out && !teed.out) || (redirected.err && !teed.err)) return true;
  }
  return false;
}

std::string why_no_room(const std::string& folder) {
  const UniqueFd file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  // File servers have no files without a name, and where no further file fits others may still
  // grow.
  if (!file) return is_full(folder) ? std::strerror(ENOSPC) : "";
  const std::array<char, 4096> page{};
  if (::write(file.get(), page.data(), page.size()) == static_cast<ssize_t>(page.size())) return "";
  const int failure = errno;
  if (failure == ENOSPC || failure == EDQUOT) return std::strerror(failure);
  return is_full(folder) ? std::strerror(ENOSPC) : "";
}

}  // namespace lockstep
