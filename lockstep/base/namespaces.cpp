#include "lockstep/base/namespaces.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

#include "lockstep/base/file.h"
#include "lockstep/base/host_name.h"

namespace lockstep::inline internal {
namespace {

/// The number of every user that has none in this namespace.
uid_t overflow_user() {
  const auto text = read_if_there("/proc/sys/kernel/overflowuid");
  return text.empty() ? 65534 : static_cast<uid_t>(std::strtoul(text.c_str(), nullptr, 10));
}

/// True if every user of the host has a number here. That holds outside of containers.
bool all_users_have_numbers() {
  constexpr unsigned long kAll = 4294967295;
  unsigned long inside = 0, outside = 0, count = 0;
  const auto map = read_if_there("/proc/self/uid_map");
  return std::sscanf(map.c_str(), "%lu %lu %lu", &inside, &outside, &count) == 3 && count == kAll;
}

}  // namespace

uint64_t namespace_id(const char* kind) {
  struct stat space {};
  std::array<char, 64> path{};  // no memory from the heap: see make_own_steps()
  std::snprintf(path.data(), path.size(), "/proc/self/ns/%s", kind);
  return ::stat(path.data(), &space) == 0 ? space.st_ino : 0;
}

uint64_t pid_space() {
  std::array<char, 32> self{};
  const bool numbered_alike = ::readlink("/proc/self", self.data(), self.size() - 1) > 0 &&
                              std::to_string(::getpid()) == self.data();
  return numbered_alike ? namespace_id("pid") : 0;
}

uint64_t pid_space_of_all_hosts() {
  return namespace_id("pid") ^ std::hash<std::string>()(boot_id());
}

OwnNumber own_number(int pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const std::string status = read_if_there(folder + "/status");
  // Its numbers from /proc's namespace to the innermost: "NSpid:\t4711\t12".
  constexpr std::string_view kNumbers = "\nNSpid:";
  const size_t begin = status.find(kNumbers);
  struct stat space {};
  if (begin == std::string::npos || ::stat((folder + "/ns/pid").c_str(), &space) != 0) return {};
  const size_t end = std::min(status.find('\n', begin + kNumbers.size()), status.size());
  const size_t last = status.rfind('\t', end);
  return {std::atoi(status.c_str() + last), space.st_ino};
}

bool is_own_user(uid_t user) {
  if (user != ::geteuid()) return false;
  return user != overflow_user() || all_users_have_numbers();
}

bool is_process_of(uid_t user, int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  int family = 0;
  socklen_t room = sizeof family;
  // Not identified by its pid, which is 0 for a process of a pid namespace that is not visible
  // here.
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &room) != 0 || family != AF_UNIX ||
      ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return false;
  }
  return peer.uid == user && (user != ::geteuid() || is_own_user(peer.uid));
}

}  // namespace lockstep::inline internal
