#pragma once
// Who takes part in a generation, with which node rank, and each one's plan. Pure.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/launch/rendezvous/membership.h"

namespace lockstep {

struct NodeWish {
  int64_t generation = 0;        ///< The last it took part in; 0: none.
  int last_rank = -1;            ///< Its node rank in that.
  std::optional<int> node_rank;  ///< Asked for by the user.
  uint64_t arrival = 0;          ///< Smaller: came earlier. No two are equal.
};

/// Indices into `nodes`, by node rank: min(nodes.size(), max_nodes) of them. Those of the newest
/// generation take part first, then those that ask for a rank, then the others; each in the order
/// of rank or arrival. A rank is kept where it is below the number of nodes, then a wish is granted
/// where it is free, then the free ones are filled in the order above. Cost: n log n.
std::vector<size_t> order_nodes(std::span<const NodeWish> nodes, size_t max_nodes);

/// Begins the next generation with the agents that are usable: numbers it, marks who takes part and
/// makes each one's plan. Leaves the counts to the caller.
PublishPlans make_generation(MembershipState* state);

}  // namespace lockstep
