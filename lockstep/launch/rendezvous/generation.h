#pragma once
// The hosts of a generation, their node ranks, and the assignment of each. Pure.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/launch/rendezvous/membership.h"

namespace lockstep::inline internal {

struct HostWish {
  int64_t generation = 0;        ///< The last one it took part in; 0: none.
  int last_rank = -1;            ///< Its node rank in that generation.
  std::optional<int> node_rank;  ///< Requested by the user.
  uint64_t arrival = 0;          ///< Smaller: came earlier. All are different.
};

/// Indices into `nodes`, by node rank: min(nodes.size(), max_nodes) of them. Members of the newest
/// generation come first, then hosts that request a rank, then the others; each in the order of
/// rank or arrival. A member keeps its rank if that is below the number of hosts. Then a request is
/// granted if the rank is free; the others fill the free ranks in the order above. Cost: n log n.
std::vector<size_t> order_hosts(std::span<const HostWish> nodes, size_t max_nodes);

/// Begins the next generation with the usable agents: numbers it, marks its members and makes each
/// one's assignment. Leaves the counts to the caller.
PublishAssignments make_generation(MembershipState* state);

}  // namespace lockstep::inline internal
