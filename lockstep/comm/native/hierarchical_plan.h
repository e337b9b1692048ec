#pragma once
// How a group over several hosts is divided, as pure functions.

#include <span>
#include <vector>

#include "lockstep/comm/reduce_tree.h"
#include "lockstep/comm/topology.h"
#include "lockstep/comm/tree_sum.h"

namespace lockstep::inline internal {

/// The plan from the view of one rank. Every layout is served, also hosts of unequal size and hosts
/// whose ranks are not consecutive. The fixed order of sums only determines how many values a host
/// must send.
struct HierarchicalPlan {
  Topology topology;
  int size = 0;    ///< Ranks.
  int host = 0;    ///< This rank's.
  int local = 0;   ///< This rank's place on its host.
  int slices = 1;  ///< Carriers per host: the smallest number of ranks on a host.

  /// By host: the largest nodes of the global tree whose ranks are all on it, in order. A host can
  /// compute their sums alone. A host with an aligned power of two of consecutive ranks has one
  /// node; any consecutive ranks have at most 2 log2(size). The worst case is one node per rank, as
  /// with ranks placed round robin. No two neighbours of the tree share a host then, and the host
  /// must send every rank's data. Give each host consecutive ranks.
  std::vector<std::vector<RankRange>> nodes;

  /// True if each host has one node, and the tree over hosts has the shape of a tree over as many
  /// ranks. Then sums of neighbouring hosts are nodes too.
  bool pairs = false;

  int num_hosts() const { return topology.num_hosts(); }
  const std::vector<int>& ranks_of(int on_host) const {
    return topology.hosts[static_cast<size_t>(on_host)];
  }
  int num_local() const { return static_cast<int>(ranks_of(host).size()); }
  /// The rank of `on_host` that carries `slice`.
  int carrier(int on_host, int slice) const {
    return ranks_of(on_host)[static_cast<size_t>(slice)];
  }
};

HierarchicalPlan make_hierarchical_plan(const Topology& topology, int rank);

/// The largest nodes of the tree over [0, size) whose ranks all are in `ranks` (ascending).
std::vector<RankRange> nodes_of_set(std::span<const int> ranks, int size);

}  // namespace lockstep::inline internal
