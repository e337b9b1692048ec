#pragma once
// Topology of a host's CPUs: hardware threads of a core; cores of a last-level cache, of a NUMA
// node, of a socket.

#include <string>
#include <vector>

#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// A logical CPU. A core and a cache are named by their lowest CPU.
struct Cpu {
  int id = 0;
  int core = 0;
  int cache = 0;
  int node = 0;
  int socket = 0;
};

struct CpuTopology {
  std::vector<Cpu> cpus;       ///< The usable ones, by id.
  std::vector<int> gpu_nodes;  ///< NUMA node of each visible GPU, in their order.
};

/// PCI addresses of this host's NVIDIA GPUs below `root`, ascending, as their driver lists them.
std::vector<std::string> nvidia_gpus(const std::string& root);

/// "0-3,8" in the kernel's notation: 0, 1, 2, 3, 8. Ends at the first invalid item.
std::vector<int> parse_cpu_list(const std::string& text);
/// The inverse; `cpus` ascend.
std::string cpu_list(const std::vector<int>& cpus);

/// The kernel's own limit.
inline constexpr int kMaxCpus = 8192;

/// CPUs that this process may run on, ascending; below kMaxCpus.
std::vector<int> usable_cpus();

/// In a worker's environment: the CPUs to which its agent has bound it, as cpu_list().
inline constexpr char kCpusVariable[] = "LOCKSTEP_CPUS";

/// The kernel's CPU mask: a bit each.
std::vector<unsigned long> cpu_mask(const std::vector<int>& cpus);
/// Binds the calling thread and its future children. One system call, so it is safe between vfork
/// and exec. False: the kernel refuses; errno has the reason.
bool bind_to(const std::vector<unsigned long>& mask);

/// Reads /sys and /proc below `root` ("" for this host's). Defaults for missing data: one core a
/// CPU, one node, one socket, and a cache a node. A GPU with an unknown node ends the list of GPUs.
/// `environment`: CUDA_VISIBLE_DEVICES, if it is a list of numbers.
CpuTopology read_cpu_topology(const std::string& root, const std::vector<int>& usable,
                              const Environment& environment);

}  // namespace lockstep::inline internal
