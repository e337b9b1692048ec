#include "lockstep/world/cpu_topology.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/number.h"
#include "lockstep/base/text.h"

namespace lockstep::inline internal {
namespace {

std::optional<int> number_in(const std::string& path) {
  const std::string text = read_if_there(path);
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || value < 0 || value > kMaxCpus) return std::nullopt;
  return static_cast<int>(value);
}

/// The lowest CPU of the list in a file.
std::optional<int> lowest_in(const std::string& path) {
  const auto list = parse_cpu_list(read_if_there(path));
  if (list.empty()) return std::nullopt;
  return *std::min_element(list.begin(), list.end());
}

/// CPU to node.
std::map<int, int> nodes_of_cpus(const std::string& root) {
  std::map<int, int> nodes;
  const std::string folder = root + "/sys/devices/system/node";
  for (const std::string& name : entry_names(folder)) {
    int node = 0;
    if (std::sscanf(name.c_str(), "node%d", &node) != 1) continue;
    for (const int cpu : parse_cpu_list(read_if_there(folder + "/" + name + "/cpulist"))) {
      nodes[cpu] = node;
    }
  }
  return nodes;
}

/// CUDA's numbers of the visible devices; nothing: all, or a list of other names.
std::optional<std::vector<int>> visible_numbers(const Environment& environment) {
  const auto found = environment.find("CUDA_VISIBLE_DEVICES");
  if (found == environment.end()) return std::nullopt;
  std::vector<int> numbers;
  for (const std::string& part : split(found->second, ',')) {
    if (!all_digits(part)) return std::nullopt;
    numbers.push_back(std::atoi(part.c_str()));
  }
  return numbers;
}

/// By PCI address, as CUDA numbers devices of one kind.
std::vector<int> nodes_of_gpus(const std::string& root, const Environment& environment) {
  std::vector<int> nodes;
  for (const std::string& address : nvidia_gpus(root)) {
    const auto node =
        number_in(root + "/sys/bus/pci/devices/" + ascii_lower(address) + "/numa_node");
    if (!node) break;
    nodes.push_back(*node);
  }
  const auto visible = visible_numbers(environment);
  if (!visible) return nodes;
  std::vector<int> shown;
  for (const int number : *visible) {
    if (static_cast<size_t>(number) >= nodes.size()) break;
    shown.push_back(nodes[static_cast<size_t>(number)]);
  }
  return shown;
}

}  // namespace

std::vector<std::string> nvidia_gpus(const std::string& root) {
  return entry_names(root + "/proc/driver/nvidia/gpus");
}

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  for (const std::string& part : split(text, ',')) {
    int first = 0;
    int last = 0;
    const int got = std::sscanf(part.c_str(), "%d-%d", &first, &last);
    if (got < 1 || first < 0) break;
    if (got == 1) last = first;
    if (last >= kMaxCpus) break;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::string cpu_list(const std::vector<int>& cpus) {
  return runs_of(cpus, ",", 2);
}

std::vector<int> usable_cpus() {
  cpu_set_t* const set = CPU_ALLOC(kMaxCpus);
  const size_t size = CPU_ALLOC_SIZE(kMaxCpus);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, size, set) == 0) {
    for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), size, set)) cpus.push_back(cpu);
    }
  }
  CPU_FREE(set);
  return cpus;
}

std::vector<unsigned long> cpu_mask(const std::vector<int>& cpus) {
  constexpr size_t kBits = sizeof(unsigned long) * 8;
  std::vector<unsigned long> mask;
  for (const int cpu : cpus) {
    const auto bit = static_cast<size_t>(cpu);
    if (mask.size() <= bit / kBits) mask.resize(bit / kBits + 1);
    mask[bit / kBits] |= 1UL << (bit % kBits);
  }
  return mask;
}

bool bind_to(const std::vector<unsigned long>& mask) {
  const auto* set = reinterpret_cast<const cpu_set_t*>(mask.data());
  return ::sched_setaffinity(0, mask.size() * sizeof(unsigned long), set) == 0;
}

CpuTopology read_cpu_topology(const std::string& root, const std::vector<int>& usable,
                              const Environment& environment) {
  CpuTopology topology;
  const auto nodes = nodes_of_cpus(root);
  std::map<int, int> first_of_node;
  for (const int id : usable) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(id);
    const auto node = nodes.find(id);
    Cpu cpu{id, id, 0, node == nodes.end() ? 0 : node->second, 0};
    const int first = first_of_node.try_emplace(cpu.node, id).first->second;
    cpu.core = lowest_in(folder + "/topology/thread_siblings_list").value_or(id);
    cpu.cache = lowest_in(folder + "/cache/index3/shared_cpu_list").value_or(first);
    cpu.socket = number_in(folder + "/topology/physical_package_id").value_or(0);
    topology.cpus.push_back(cpu);
  }
  topology.gpu_nodes = nodes_of_gpus(root, environment);
  return topology;
}

}  // namespace lockstep::inline internal
