#pragma once
// Which CPUs of a host belong together: hardware threads of a core, cores of a last-level cache,
// of a NUMA node, of a socket.

#include <string>
#include <vector>

#include "lockstep/world/environment.h"

namespace lockstep {

/// A logical CPU. A core and a cache are named by the lowest CPU of theirs.
struct Cpu {
  int id = 0;
  int core = 0;
  int cache = 0;
  int node = 0;
  int socket = 0;
};

struct CpuTopology {
  std::vector<Cpu> cpus;       ///< Those that may be used, by id.
  std::vector<int> gpu_nodes;  ///< NUMA node of each visible GPU, in their order.
};

/// "0-3,8" as the kernel writes it: 0, 1, 2, 3, 8. What is no such list ends it.
std::vector<int> parse_cpu_list(const std::string& text);
/// And back; `cpus` ascend.
std::string cpu_list(const std::vector<int>& cpus);

/// What this process may run on, ascending.
std::vector<int> usable_cpus();

/// In a worker's environment: the CPUs to which its agent has bound it, as cpu_list().
inline constexpr char kCpusVariable[] = "LOCKSTEP_CPUS";

/// CPUs as the kernel takes them: a bit each.
std::vector<unsigned long> cpu_mask(const std::vector<int>& cpus);
/// Binds the calling thread and what it starts. One system call, so also between vfork and exec.
/// False: the kernel refuses; errno says why.
bool bind_to(const std::vector<unsigned long>& mask);

/// Reads /sys and /proc below `root` ("" for this host's). What is not said there is one core a
/// CPU, one node, one socket, and a cache a node; a GPU whose node is unknown ends the list of
/// GPUs. `environment`: CUDA_VISIBLE_DEVICES, where it is a list of numbers.
CpuTopology read_cpu_topology(const std::string& root, const std::vector<int>& usable,
                              const Environment& environment);

}  // namespace lockstep
