#pragma once
// Slurm's compressed lists of hosts ("gpu[01-03,7],login2"; containers lack scontrol) and of
// numbers.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

/// Most hosts in one item.
inline constexpr size_t kMaxHostsOfItem = 65536;
/// Most bytes of all names together.
inline constexpr size_t kMaxHostListBytes = size_t{64} << 20;

/// The names in order, duplicates kept; empty for an empty list. Names are separated by commas or
/// blanks; a bracket holds numbers and ranges, each printed at the width of its first number. Of
/// several brackets in a name the last runs fastest, then the first, the second, ... as in
/// `scontrol show hostnames`. Text after the last bracket is appended.
/// Errors: kInvalidArgument naming the item: bracket left open or empty, blank in a bracket, not a
/// number, range backwards, too many. Source: Slurm's src/common/hostlist.c.
std::vector<std::string> expand_host_list(std::string_view list);

/// Slurm's "2(x3),1": the tasks of each node, here 2, 2, 2, 1. At most 65,536 nodes.
/// Errors: kInvalidArgument naming the item.
std::vector<int> parse_tasks_per_node(std::string_view text);

}  // namespace lockstep::inline internal
