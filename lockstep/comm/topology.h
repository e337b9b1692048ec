#pragma once
// Which ranks share a host, from what every rank knows: a pure function.

#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct Topology {
  std::vector<std::vector<int>> hosts;  ///< Ranks of each host, ascending; hosts by first rank.
  std::vector<int> host_of;             ///< By rank: index into `hosts`.
  std::vector<int> local_rank_of;       ///< By rank: place in its host's list.

  int num_hosts() const { return static_cast<int>(hosts.size()); }
  int leader_of(int host) const { return hosts[static_cast<size_t>(host)].front(); }
  const std::vector<int>& ranks_beside(int rank) const {
    return hosts[static_cast<size_t>(host_of[static_cast<size_t>(rank)])];
  }
};

/// Ranks with equal host_ids can share memory.
Topology make_topology(std::span<const std::string> host_ids);

}  // namespace lockstep
