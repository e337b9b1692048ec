#include "lockstep/world/cores.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/text.h"
#include "lockstep/world/cpu_topology.h"

namespace lockstep::inline internal {
namespace {

/// "400000 100000", or "max 100000".
std::optional<double> limit_of_version_2(const std::string& folder) {
  const std::string text = read_if_there(folder + "/cpu.max");
  if (text.empty()) return std::nullopt;
  long long quota = 0;
  long long period = 0;
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

/// `path` and its parents, up to the root. In a container the root is its own group if /proc shows
/// the host's path.
std::vector<std::string> groups_around(std::string path) {
  std::vector<std::string> groups;
  if (path.find("..") != std::string::npos) path.clear();  // outside the mounted hierarchy
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

constexpr auto kAnswer = std::chrono::minutes(5);  // far longer than the store ever takes

std::string cpus_key(const World& world, const std::string& text) {
  return fmt::format("cpus/{}/{}", world.node_rank, text);
}

std::string key_of_cpus(const World& world, const std::vector<int>& cpus) {
  return cpus_key(world, "of " + cpu_list(cpus).substr(0, 1000));
}

bool are_part(const std::vector<int>& cpus) {
  return std::ssize(cpus) < online_cpus();
}

}  // namespace

double cpu_quota(const std::string& root) {
  const std::string mounted = root + "/sys/fs/cgroup";
  LeastQuota least;
  for (const auto& [controllers, path] : own_cgroups(root)) {
    for (const std::string& group : groups_around(path)) {
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

int threads_per_rank(const Environment& environment, int cores, int local_size) {
  const auto given = environment.find("OMP_NUM_THREADS");
  if (given == environment.end() || given->second.empty())
    return std::max(1, cores / std::max(1, local_size));
  // A list has one number per nesting level; ours is the outermost.
  return static_cast<int>(parse_int(given->second.substr(0, given->second.find(',')), 1, 1 << 16,
                                    "environment variable OMP_NUM_THREADS"));
}

int cores_within(int cpus, double quota) {
  const int most = quota > 0 ? static_cast<int>(std::min(quota, 1e6)) : cpus;
  return std::max(1, std::min(cpus, most));
}

int usable_cores() {
  static const double kQuota = cpu_quota();  // read once: this is called at every start
  return cores_within(static_cast<int>(usable_cpus().size()), kQuota);
}

int online_cpus() {
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

int cores_of_host(const std::string& root) {
  return cores_within(online_cpus(), cpu_quota(root));
}

int cores_for(int ranks) {
  const auto cpus = static_cast<int>(usable_cpus().size());
  return cpus <= ranks ? cpus : usable_cores();
}

int cores_of_rank(int cpus, int sharers, double quota, int local_size) {
  return std::min(std::max(1, cpus / std::max(1, sharers)),
                  cores_within(cpus, quota / std::max(1, local_size)));
}

void publish_cpus(const World& world, const std::vector<int>& cpus, Deadline deadline) {
  if (world.local_size == 1) return;
  world.store->add(key_of_cpus(world, cpus), 1, deadline);
  world.store->set(cpus_key(world, std::to_string(world.local_rank)), "", deadline);
  if (!are_part(cpus)) return;
  std::vector<std::string> all;
  for (int rank = 0; rank < world.local_size; ++rank) {
    all.push_back(cpus_key(world, std::to_string(rank)));
  }
  world.store->wait(all, deadline);
}

int ranks_on_my_cpus(const World& world, const std::vector<int>& cpus) {
  if (world.local_size == 1) return 1;
  if (const auto said = env(kCpuSharersVariable)) {
    const auto sharers = static_cast<int>(parse_int(*said, 1, 1 << 20, kCpuSharersVariable));
    return std::min(sharers, world.local_size);  // of another launcher within a rank
  }
  if (!world.store || !are_part(cpus)) return world.local_size;
  const auto told = world.store->try_get(key_of_cpus(world, cpus), Deadline::after(kAnswer));
  return told ? static_cast<int>(parse_int(*told, 1, world.local_size, "ranks on these CPUs"))
              : world.local_size;
}

int own_cores(const World& world) {
  static const double kQuota = cpu_quota();  // read once
  const auto cpus = usable_cpus();
  return cores_of_rank(static_cast<int>(cpus.size()), ranks_on_my_cpus(world, cpus), kQuota,
                       world.local_size);
}

}  // namespace lockstep::inline internal
