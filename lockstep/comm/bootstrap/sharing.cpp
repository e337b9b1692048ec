#include "lockstep/comm/bootstrap/sharing.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <map>

#include "lockstep/base/log.h"
#include "lockstep/comm/native/shm/segment.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

using Mark = uint64_t;

}  // namespace

Sample::Sample() : fd_server_(shm::start_fd_server()) {
  try {
    Mark mark = 0;
    if (::getrandom(&mark, sizeof mark, 0) != sizeof mark) throw io_error("getrandom");
    fd_ = shm::make_memory(sizeof mark);
    if (::pwrite(fd_.get(), &mark, sizeof mark, 0) != sizeof mark) throw io_error("pwrite");
    place_ = fmt::format("{:x} {}", mark, to_string(shm::to_remote(fd_.get())));
  } catch (const Error& error) {
    log_debug(fmt::format("no memory to share: {}", error.what()));
  }
}

std::string why_not_shared(const std::string& place) {
  const auto blank = place.find(' ');
  const auto remote = shm::parse_remote_fd(blank == std::string::npos ? "" : place.substr(blank));
  Mark mark = 0;
  if (!remote || std::sscanf(place.c_str(), "%" SCNx64, &mark) != 1) return "it has none";
  try {
    const UniqueFd fd = shm::open_memory(*remote);
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

}  // namespace lockstep::inline internal
