#include "lockstep/world/rank_plan.h"

#include <fmt/format.h>

#include <map>

#include "lockstep/error.h"

namespace lockstep {

std::vector<NodeRanks> plan_ranks(const std::vector<NodeOffer>& offers) {
  std::vector<NodeRanks> plan;
  std::map<std::string, int> role_sizes;
  int next_rank = 0;
  for (const NodeOffer& offer : offers) {
    if (offer.num_nodes != static_cast<int>(offers.size())) {
      throw Error(
          ErrorCode::kMismatch,
          fmt::format("node {} ({}) was started with --nnodes {}, node 0 ({}) with {}", plan.size(),
                      offer.host, offer.num_nodes, offers[0].host, offers.size()));
    }
    plan.push_back({next_rank, offer.local_size, role_sizes[offer.role], 0});
    next_rank += offer.local_size;
    role_sizes[offer.role] += offer.local_size;
  }
  for (size_t node = 0; node < plan.size(); ++node) {
    plan[node].role_size = role_sizes[offers[node].role];
  }
  return plan;
}

int world_size(const std::vector<NodeRanks>& plan) {
  return plan.empty() ? 0 : plan.back().first_rank + plan.back().local_size;
}

}  // namespace lockstep
