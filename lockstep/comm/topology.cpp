#include "lockstep/comm/topology.h"

#include <algorithm>
#include <map>

namespace lockstep::inline internal {

Topology make_topology(std::span<const std::string> host_ids) {
  Topology topology;
  std::map<std::string, int> index;
  for (size_t rank = 0; rank < host_ids.size(); ++rank) {
    const auto [at, added] = index.try_emplace(host_ids[rank], topology.num_hosts());
    if (added) topology.hosts.emplace_back();
    auto& host = topology.hosts[static_cast<size_t>(at->second)];
    topology.host_of.push_back(at->second);
    topology.local_rank_of.push_back(static_cast<int>(host.size()));
    host.push_back(static_cast<int>(rank));
  }
  return topology;
}

std::vector<int> members_of_color(std::span<const ColorKey> all, int color) {
  std::vector<int> members;
  for (int rank = 0; color >= 0 && rank < static_cast<int>(all.size()); ++rank) {
    if (all[static_cast<size_t>(rank)].color == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return all[static_cast<size_t>(a)].key < all[static_cast<size_t>(b)].key;
  });
  return members;
}

}  // namespace lockstep::inline internal
