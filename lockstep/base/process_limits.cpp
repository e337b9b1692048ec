#include "lockstep/base/process_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "lockstep/base/proc.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

/// A limit, and the part of it in use.
struct Limit {
  long most = 0;
  long used = 0;
  std::string words;
  bool reached() const { return used >= most; }
};

/// Nothing if the file is missing or contains "max".
std::optional<long> number_in(const fs::path& file) {
  std::ifstream in(file);
  long number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

/// Mount and path of the groups that may limit processes; the one with its own controller first.
std::vector<std::pair<std::string, std::string>> pids_cgroups(const std::string& root) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [controllers, path] : own_cgroups(root)) {
    if (controllers == "pids") found.insert(found.begin(), {root + "/sys/fs/cgroup/pids", path});
    if (controllers.empty()) found.emplace_back(root + "/sys/fs/cgroup", path);
  }
  return found;
}

/// Limit of this process's cgroup and those above it: the first that is reached, else the lowest.
std::optional<Limit> cgroup_limit(const std::string& root) {
  std::optional<Limit> lowest;
  for (const auto& [mount, path] : pids_cgroups(root)) {
    for (fs::path group = path;; group = group.parent_path()) {
      const fs::path folder = mount + group.string();
      const auto most = number_in(folder / "pids.max");
      const auto used = number_in(folder / "pids.current");
      if (most && used) {
        const Limit limit = {*most, *used,
                             fmt::format("pids.max of cgroup {}: {}, pids.current: {}",
                                         group.string(), *most, *used)};
        if (limit.reached()) return limit;
        if (!lowest) lowest = limit;
      }
      if (!group.has_relative_path()) break;
    }
  }
  return lowest;
}

/// Threads of all processes of this user.
long count_threads(const std::string& root) {
  long threads = 0;
  const std::string user = fmt::format("Uid:\t{}\t", ::getuid());
  for (const pid_t pid : processes(root)) {
    std::ifstream in(fmt::format("{}/proc/{}/status", root, pid));
    bool ours = false;
    for (std::string line; std::getline(in, line);) {
      ours = ours || line.rfind(user, 0) == 0;
      if (ours && line.rfind("Threads:", 0) == 0) threads += std::atol(line.c_str() + 8);
    }
  }
  return threads;
}

std::optional<Limit> user_limit(const std::string& root) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  const auto most = static_cast<long>(limit.rlim_cur);
  const long used = count_threads(root);
  return Limit{most, used,
               fmt::format("ulimit -u: {}, processes and threads of this user: {}", most, used)};
}

}  // namespace

std::string process_shortage(int error_number, const std::string& root) {
  if (error_number != EAGAIN) return "";
  std::string reached;
  std::string all;
  for (const auto& limit : {user_limit(root), cgroup_limit(root)}) {
    if (!limit) continue;
    all += (all.empty() ? "" : "; ") + limit->words;
    if (limit->reached()) reached += (reached.empty() ? "" : "; ") + limit->words;
  }
  errno = error_number;
  if (!reached.empty()) return reached;
  return all.empty() ? "a limit of processes and threads is reached" : all;
}

Error start_error(const std::string& doing) {
  const int number = errno;
  const std::string shortage = process_shortage(number);
  Error error = io_error(doing);
  if (!shortage.empty()) {
    error = Error(error.code(), fmt::format("{} ({})", error.what(), shortage));
  }
  errno = number;
  return error;
}

}  // namespace lockstep::inline internal
