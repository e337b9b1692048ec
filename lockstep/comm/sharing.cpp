#include "lockstep/comm/sharing.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/native/shm/door.h"
#include "lockstep/comm/native/shm/segment.h"

namespace lockstep {
namespace {

using Mark = uint64_t;

/// Another machine with the same ids may have any file there, and opening that could do harm.
bool is_memory(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size() - 1);
  // Where it cannot be read, opening says why.
  return length < 0 || std::string(target.data()).starts_with("/memfd:lockstep");
}

}  // namespace

Sample::Sample() {
  shm::open_door();
  try {
    Mark mark = 0;
    if (::getrandom(&mark, sizeof mark, 0) != sizeof mark) throw io_error("getrandom");
    fd_ = shm::make_memory(sizeof mark);
    if (::pwrite(fd_.get(), &mark, sizeof mark, 0) != sizeof mark) throw io_error("pwrite");
    place_ = fmt::format("{} {} {:x}", ::getpid(), fd_.get(), mark);
  } catch (const Error& error) {
    log_debug(fmt::format("no memory to share: {}", error.what()));
  }
}

std::string why_not_shared(const std::string& place) {
  int pid = 0;
  int number = -1;
  unsigned long mark = 0;
  if (std::sscanf(place.c_str(), "%d %d %lx", &pid, &number, &mark) != 3) return "it has none";
  if (!is_memory(fmt::format("/proc/{}/fd/{}", pid, number))) return "it is on another machine";
  try {
    const UniqueFd fd = shm::open_memory(pid, number);
    Mark found = 0;
    if (::pread(fd.get(), &found, sizeof found, 0) == sizeof found && found == mark) return "";
    return "it is on another machine";
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<int> leaders_of(const std::vector<std::string>& host_ids) {
  std::map<std::string, int> first;
  std::vector<int> leaders;
  for (const std::string& id : host_ids) {
    leaders.push_back(first.emplace(id, static_cast<int>(leaders.size())).first->second);
  }
  return leaders;
}

std::vector<std::string> settled_hosts(std::vector<std::string> host_ids,
                                       const std::vector<int>& apart) {
  for (const int rank : apart) host_ids[static_cast<size_t>(rank)] += fmt::format("/rank {}", rank);
  return host_ids;
}

}  // namespace lockstep
