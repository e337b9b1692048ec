#pragma once
// A host's resources for ranks, and which of its cores each rank gets.

#include <string>
#include <vector>

#include "lockstep/world/cpu_topology.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// This host's resources for ranks.
struct HostResources {
  int cores = 1;
  int gpus = 0;
};

/// Accelerators that this process may open, by their device files below `root`: NVIDIA's, else
/// Ascend's, else AMD's. Their numbers may begin anywhere: a container gets some of a host's.
int count_accelerators(const std::string& root = "");

/// Cores and accelerators that this process may use. CUDA_VISIBLE_DEVICES and similar variables
/// (world/device.h) may hide some accelerators.
HostResources resources_of_host(const Environment& environment);

/// torchrun's --numa_binding (torch/numa/binding.py); in the order of their names in messages.
enum class CoreBinding {
  kNone,
  kNode,         ///< All CPUs of the rank's NUMA node.
  kSocket,       ///< All CPUs of all nodes of its socket.
  kExclusive,    ///< A share of the node's cores that no other rank has.
  kCoreComplex,  ///< The cores of one last-level cache of the node; one for each rank,
                 ///< as far as they last.
};

/// "node", "socket", "exclusive", "core-complex". Errors: kInvalidArgument naming `what`.
CoreBinding parse_core_binding(const std::string& text, const std::string& what);

/// CPUs of each of `ranks` ranks, ascending; kNone: an empty list. A rank's node is that of the GPU
/// with its number. With fewer GPUs than ranks, nodes are assigned to ranks in order and as evenly
/// as possible. Errors: kInvalidArgument (kExclusive and a node with more ranks than cores; no
/// usable CPU on a GPU's node).
std::vector<std::vector<int>> cpus_of_ranks(const CpuTopology& topology, CoreBinding binding,
                                            int ranks);

}  // namespace lockstep::inline internal
