#pragma once
// What a host has to run ranks on, and which of its cores each rank gets.

#include <string>
#include <vector>

#include "lockstep/world/cpu_topology.h"
#include "lockstep/world/environment.h"

namespace lockstep {

/// What this host has to run ranks on.
struct Machine {
  int cores = 1;
  int gpus = 0;
};

/// Accelerators that this process may open, by their device files below `root`: NVIDIA's, else
/// Ascend's, else AMD's. Their numbers may begin anywhere: a container is given some of a host's.
int count_accelerators(const std::string& root = "");

/// Cores this process may use, and accelerators, of which CUDA_VISIBLE_DEVICES and its like
/// (world/device.h) may hide some.
Machine this_machine(const Environment& environment);

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
