#include "lockstep/world/cpu_quota.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

/// "400000 100000", or "max 100000".
std::optional<double> limit_of_version_2(const std::string& folder) {
  long long quota = 0;
  long long period = 0;
  const std::string text = read_if_there(folder + "/cpu.max");
  if (std::sscanf(text.c_str(), "%lld %lld", &quota, &period) != 2) return std::nullopt;
  if (quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<double>(quota) / static_cast<double>(period);
}

std::optional<double> limit_of_version_1(const std::string& folder) {
  const long long quota = std::atoll(read_if_there(folder + "/cpu.cfs_quota_us").c_str());
  if (quota <= 0) return std::nullopt;  // -1: none
  const long long period = std::atoll(read_if_there(folder + "/cpu.cfs_period_us").c_str());
  if (period <= 0) return std::nullopt;
  return static_cast<double>(quota) / static_cast<double>(period);
}

/// `path` and those around it, up to the root, which is a container's own group where its
/// /proc names the group by the host's path.
std::vector<std::string> groups_around(std::string path) {
  std::vector<std::string> groups;
  if (path.find("..") != std::string::npos) path.clear();  // outside of what is mounted here
  while (path.size() > 1) {
    groups.push_back(path);
    path.erase(path.rfind('/'));
  }
  groups.emplace_back("");
  return groups;
}

bool is_cpu_controller(const std::string& controllers) {
  const auto names = split(controllers, ',');
  return std::find(names.begin(), names.end(), "cpu") != names.end();
}

class LeastQuota {
 public:
  void take(std::optional<double> limit) {
    if (limit && (least_ == 0 || *limit < least_)) least_ = *limit;
  }
  double value() const { return least_; }

 private:
  double least_ = 0;
};

}  // namespace

double cpu_quota(const std::string& root) {
  const std::string mounted = root + "/sys/fs/cgroup";
  LeastQuota least;
  // "HIERARCHY:CONTROLLERS:PATH"; version 2 is hierarchy 0 and names no controllers.
  for (const std::string& line : split(read_if_there(root + "/proc/self/cgroup"), '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    for (const std::string& group : groups_around(line.substr(second + 1))) {
      if (controllers.empty()) {
        least.take(limit_of_version_2(mounted + group));
        least.take(limit_of_version_2(mounted + "/unified" + group));
      } else if (is_cpu_controller(controllers)) {
        least.take(limit_of_version_1(mounted + "/" + controllers + group));
        if (controllers != "cpu") least.take(limit_of_version_1(mounted + "/cpu" + group));
      }
    }
  }
  return least.value();
}

}  // namespace lockstep
