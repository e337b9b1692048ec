#include "lockstep/world/own_cores.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/base/env.h"
#include "lockstep/world/cpu_quota.h"
#include "lockstep/world/cpu_topology.h"
#include "lockstep/world/identity.h"

namespace lockstep {
namespace {

constexpr auto kAnswer = std::chrono::minutes(5);  // far above what the store ever takes

std::string cpus_key(const World& world, const std::string& text) {
  return fmt::format("cpus/{}/{}", world.node_rank, text);
}

std::string key_of_cpus(const World& world, const std::vector<int>& cpus) {
  return cpus_key(world, "of " + cpu_list(cpus).substr(0, 1000));
}

bool are_part(const std::vector<int>& cpus) {
  return static_cast<long>(cpus.size()) < ::sysconf(_SC_NPROCESSORS_ONLN);
}

}  // namespace

void tell_my_cpus(const World& world, const std::vector<int>& cpus, Deadline deadline) {
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

}  // namespace lockstep
