#pragma once
// Finds the ranks that belong together: on one host, and in one group after a split. Pure functions
// of data that every rank has.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::inline internal {

struct Topology {
  std::vector<std::vector<int>> hosts;  ///< Ranks of each host, ascending; hosts by first rank.
  std::vector<int> host_of;             ///< By rank: index into `hosts`.
  std::vector<int> local_rank_of;       ///< By rank: place in its host's list.

  int num_hosts() const { return static_cast<int>(hosts.size()); }
};

/// Ranks with equal host_ids can share memory.
Topology make_topology(std::span<const std::string> host_ids);

/// A rank's arguments to a split. Sent as two int32.
struct ColorKey {
  int32_t color = 0;  ///< Negative: in no group.
  int32_t key = 0;
};

/// The ranks of `color`, by key, equal keys by rank; none for a negative color. `all` by rank.
std::vector<int> members_of_color(std::span<const ColorKey> all, int color);

}  // namespace lockstep::inline internal
