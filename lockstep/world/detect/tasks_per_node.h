#pragma once

#include <string_view>
#include <vector>

namespace lockstep {

/// Slurm's "2(x3),1": the tasks of each node, here 2, 2, 2, 1. At most 65,536 nodes.
/// Errors: kInvalidArgument naming the item.
std::vector<int> parse_tasks_per_node(std::string_view text);

}  // namespace lockstep
