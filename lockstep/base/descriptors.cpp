#include "lockstep/base/descriptors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "lockstep/base/mutex.h"
#include "lockstep/base/raw_folder.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// Numbers of descriptors that are tried one by one.
constexpr rlim_t kMostAsked = 1 << 20;

/// Tests each number: a list of them would need a descriptor.
int count_open(rlim_t limit) {
  int open = 0;
  for (int fd = 0; fd < static_cast<int>(std::min(limit, kMostAsked)); ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) ++open;
  }
  return open;
}

/// Descriptors for other uses of a process, and for programs that are being started.
constexpr size_t kOtherDescriptors = 160;

/// Descriptors that are kept from a server's clients.
constexpr rlim_t kKeptFromClients = 64;

bool has_room_for_client(int open) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t kept = std::min(kKeptFromClients, limit.rlim_cur / 4);
  const UniqueFd lowest(::fcntl(open, F_DUPFD_CLOEXEC, 0));
  return lowest && static_cast<rlim_t>(lowest.get()) + kept < limit.rlim_cur;
}

/// Any thread may be the first to raise the limit.
Mutex raising;
std::optional<rlimit> before_raising LOCKSTEP_GUARDED_BY(raising);

}  // namespace

bool raise_soft_descriptor_limit() {
  const MutexLock lock(raising);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  const rlimit before = limit;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if (!before_raising) before_raising = before;
  return true;
}

bool has_descriptor_for_client(int open) {
  // The limit is only raised when needed: child processes inherit it.
  return has_room_for_client(open) || (raise_soft_descriptor_limit() && has_room_for_client(open));
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

std::optional<rlimit> users_descriptor_limit() {
  const MutexLock lock(raising);
  return before_raising;
}

UsersDescriptorLimit::UsersDescriptorLimit() {
  const auto users = users_descriptor_limit();
  rlimit raised{};
  if (!users || ::getrlimit(RLIMIT_NOFILE, &raised) != 0) return;
  raised_ = raised;
  ::setrlimit(RLIMIT_NOFILE, &*users);
}

UsersDescriptorLimit::~UsersDescriptorLimit() {
  if (raised_) ::setrlimit(RLIMIT_NOFILE, &*raised_);
}

void check_descriptors(size_t needed, const std::string& what) {
  rlimit limit{};
  needed += kOtherDescriptors;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || needed <= limit.rlim_cur) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} need {} open files, and this process may have {}: raise the hard "
                          "limit (ulimit -Hn)",
                          what, needed, limit.rlim_cur));
}

void close_from(int lowest) {
  if (::close_range(static_cast<unsigned>(lowest), ~0U, 0) == 0) return;
  // Before Linux 5.9, or a seccomp filter refuses it. The limit may be a thousand million.
  const UniqueFd list(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (list) {
    for_each_name(list.get(), [&](const char* name) {
      const int fd = std::atoi(name);
      if (fd >= lowest && fd != list.get()) ::close(fd);
    });
    return;
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto end = static_cast<int>(std::min(limit.rlim_cur, kMostAsked));
  for (int fd = lowest; fd < end; ++fd) ::close(fd);
}

std::string pipe_name(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return "";
  return fmt::format("{}:{}", status.st_dev, status.st_ino);
}

}  // namespace lockstep::inline internal
