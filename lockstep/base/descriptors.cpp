#include "lockstep/base/descriptors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

namespace lockstep {
namespace {

/// Asks for each: a list of them would take a descriptor.
int count_open(rlim_t limit) {
  constexpr rlim_t kMostAsked = 1 << 20;
  int open = 0;
  for (int fd = 0; fd < static_cast<int>(std::min(limit, kMostAsked)); ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) ++open;
  }
  return open;
}

}  // namespace

bool raise_soft_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

std::string descriptor_shortage(int error_number) {
  if (error_number == ENFILE) return "this machine has no more: raise fs.file-max";
  if (error_number != EMFILE) return "";
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int open = count_open(limit.rlim_cur);
  errno = error_number;
  return fmt::format("{} of limit {} are open; raise it, ulimit -n", open, limit.rlim_cur);
}

}  // namespace lockstep
