#include "lockstep/comm/native/hierarchical_plan.h"

#include <algorithm>

namespace lockstep::inline internal {
namespace {

/// The value of HierarchicalPlan::pairs.
bool can_pair(const std::vector<std::vector<RankRange>>& nodes, int size) {
  std::vector<RankRange> one_each;
  for (const auto& of_host : nodes) {
    if (of_host.size() != 1) return false;
    one_each.push_back(of_host.front());
  }
  return has_plain_shape(one_each, size);
}

}  // namespace

std::vector<RankRange> nodes_of_set(std::span<const int> ranks, int size) {
  std::vector<RankRange> nodes;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    // A node is a range of consecutive ranks, so it lies within one such range of this host.
    const auto run = tree_nodes({ranks[i], ranks[end - 1] + 1}, size);
    nodes.insert(nodes.end(), run.begin(), run.end());
    i = end;
  }
  return nodes;
}

HierarchicalPlan make_hierarchical_plan(const Topology& topology, int rank) {
  HierarchicalPlan plan;
  plan.topology = topology;
  plan.size = static_cast<int>(topology.host_of.size());
  plan.host = topology.host_of[static_cast<size_t>(rank)];
  plan.local = topology.local_rank_of[static_cast<size_t>(rank)];
  plan.slices = plan.size;
  for (const auto& host : topology.hosts) {
    plan.slices = std::min(plan.slices, static_cast<int>(host.size()));
    plan.nodes.push_back(nodes_of_set(host, plan.size));
  }
  plan.pairs = can_pair(plan.nodes, plan.size);
  return plan;
}

}  // namespace lockstep::inline internal
