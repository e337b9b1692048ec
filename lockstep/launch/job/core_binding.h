#pragma once
// Which CPUs each rank of a host may run on. Pure.

#include <string>
#include <vector>

#include "lockstep/world/cpu_topology.h"

namespace lockstep {

/// torchrun's --numa_binding (torch/numa/binding.py); in the order of their names in messages.
enum class CoreBinding {
  kNone,
  kNode,         ///< All CPUs of the rank's NUMA node.
  kSocket,       ///< Those of all nodes of its socket.
  kExclusive,    ///< A share of the node's cores that no other rank has.
  kCoreComplex,  ///< The cores of one last-level cache of the node; another for each rank, while
                 ///< there are.
};

/// "node", "socket", "exclusive", "core-complex". Errors: kInvalidArgument, which names `what`.
CoreBinding parse_core_binding(const std::string& text, const std::string& what);

/// CPUs of each of `ranks` ranks, ascending; kNone: an empty list. A rank's node is that of the GPU
/// of its number; where there are fewer GPUs than ranks, the nodes are dealt out to ranks in order,
/// as evenly as can be. Errors: kInvalidArgument (kExclusive, and a node has more ranks than cores;
/// no CPU of a GPU's node may be used).
std::vector<std::vector<int>> cpus_of_ranks(const CpuTopology& topology, CoreBinding binding,
                                            int ranks);

}  // namespace lockstep
