#include "lockstep/world/identity.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/env.h"
#include "lockstep/error.h"
#include "lockstep/world/cpu_quota.h"
#include "lockstep/world/cpu_topology.h"
#include "lockstep/world/decision.h"

namespace lockstep {
namespace {

std::string number(int value) {
  return value == kNotTold ? "?" : std::to_string(value);
}

}  // namespace

std::string to_string(Channel channel) {
  switch (channel) {
    case Channel::kPmix:
      return "PMIx";
    case Channel::kPmi:
      return "PMI";
    case Channel::kFolder:
      return "LOCKSTEP_RENDEZVOUS_DIR";
    case Channel::kMunge:
      return "munge";
  }
  return "?";
}

std::string describe(const Identity& id) {
  if (id.scheduler) return fmt::format("no rank: the scheduler of {}", id.size);
  return fmt::format("rank {} of {}, local rank {} of {}, node {} of {}", id.rank, id.size,
                     number(id.local_rank), number(id.local_size), number(id.node_rank),
                     number(id.num_nodes));
}

Identity decide_identity(const Environment& environment) {
  const Decision decision = decide(inputs_from(environment));
  if (!decision.problem.empty()) throw Error(ErrorCode::kInvalidArgument, decision.problem);
  return decision.identity;
}

bool is_launched() {
  return decide_identity(this_environment()).launcher != "none";
}

int threads_per_rank(const Environment& environment, int cores, int local_size) {
  const auto given = environment.find("OMP_NUM_THREADS");
  if (given == environment.end() || given->second.empty())
    return std::max(1, cores / std::max(1, local_size));
  // A list gives one number per nesting level; ours is the outermost.
  return static_cast<int>(parse_int(given->second.substr(0, given->second.find(',')), 1, 1 << 16,
                                    "environment variable OMP_NUM_THREADS"));
}

int cores_within(int cpus, double quota) {
  const int most = quota > 0 ? static_cast<int>(std::min(quota, 1e6)) : cpus;
  return std::max(1, std::min(cpus, most));
}

int usable_cores() {
  static const double kQuota = cpu_quota();  // read once: this is asked at every start
  return cores_within(static_cast<int>(usable_cpus().size()), kQuota);
}

int cores_of_rank(int cpus, int sharers, double quota, int local_size) {
  return std::min(std::max(1, cpus / std::max(1, sharers)),
                  cores_within(cpus, quota / std::max(1, local_size)));
}

}  // namespace lockstep
