#include "lockstep/launch/job/host_resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "lockstep/base/counted.h"
#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/device.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

bool is_numbered(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix) && all_digits(name.substr(prefix.size()));
}

int count_numbered(const std::string& folder, const std::string& prefix) {
  const auto names = entry_names(folder);
  return static_cast<int>(std::count_if(names.begin(), names.end(), [&](const std::string& name) {
    return is_numbered(name, prefix);
  }));
}

/// Graphics devices have such files too, so the vendor is checked; compute devices also need kfd.
int count_amd(const std::string& root) {
  if (!fs::exists(root + "/dev/kfd")) return 0;
  int count = 0;
  for (const std::string& name : entry_names(root + "/dev/dri")) {
    if (!is_numbered(name, "renderD")) continue;
    // A device without a vendor is not on a PCI bus.
    const auto maker = read_if_there(root + "/sys/class/drm/" + name + "/device/vendor");
    count += maker.starts_with("0x1002") ? 1 : 0;
  }
  return count;
}

using CpuIds = std::vector<int>;

[[noreturn]] void refuse_binding(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, text);
}

template <class Wanted>
CpuIds ids_where(const CpuTopology& topology, const Wanted& wanted) {
  CpuIds ids;
  for (const Cpu& cpu : topology.cpus) {
    if (wanted(cpu)) ids.push_back(cpu.id);
  }
  return ids;
}

std::vector<int> node_of_each_rank(const CpuTopology& topology, int ranks) {
  if (topology.gpu_nodes.size() >= static_cast<size_t>(ranks)) {
    return {topology.gpu_nodes.begin(), topology.gpu_nodes.begin() + ranks};
  }
  std::set<int> nodes;
  for (const Cpu& cpu : topology.cpus) nodes.insert(cpu.node);
  const std::vector<int> order(nodes.begin(), nodes.end());
  std::vector<int> result;
  for (int rank = 0; rank < ranks && !order.empty(); ++rank) {
    result.push_back(order[static_cast<size_t>(rank) * order.size() / static_cast<size_t>(ranks)]);
  }
  return result;
}

/// The lowest CPU of each group of a node's CPUs, ascending.
std::vector<int> groups_of(const CpuTopology& topology, int node, int Cpu::*group) {
  std::set<int> groups;
  for (const Cpu& cpu : topology.cpus) {
    if (cpu.node == node) groups.insert(cpu.*group);
  }
  return {groups.begin(), groups.end()};
}

CpuIds of_socket(const CpuTopology& topology, int node) {
  std::set<int> sockets;
  for (const Cpu& cpu : topology.cpus) {
    if (cpu.node == node) sockets.insert(cpu.socket);
  }
  return ids_where(topology, [&](const Cpu& cpu) { return sockets.contains(cpu.socket); });
}

/// The share of rank `index` of `count` on the node; the first ranks get the remainder's cores.
CpuIds exclusive(const CpuTopology& topology, int node, size_t index, size_t count) {
  const auto cores = groups_of(topology, node, &Cpu::core);
  if (cores.size() < count) {
    refuse_binding(
        fmt::format("NUMA node {} has {} for {}: none of its own for each; bind to 'node', or "
                    "start fewer",
                    node, counted(static_cast<int64_t>(cores.size()), "core"),
                    counted(static_cast<int64_t>(count), "rank")));
  }
  const size_t share = cores.size() / count;
  const size_t more = cores.size() % count;
  const size_t first = index * share + std::min(index, more);
  const size_t last = first + share + (index < more ? 1 : 0);
  const std::set<int> own(cores.begin() + static_cast<std::ptrdiff_t>(first),
                          cores.begin() + static_cast<std::ptrdiff_t>(last));
  return ids_where(topology,
                   [&](const Cpu& cpu) { return cpu.node == node && own.contains(cpu.core); });
}

CpuIds core_complex(const CpuTopology& topology, int node, size_t index) {
  const auto caches = groups_of(topology, node, &Cpu::cache);
  if (caches.empty()) return {};
  const int own = caches[index % caches.size()];
  return ids_where(topology, [&](const Cpu& cpu) { return cpu.node == node && cpu.cache == own; });
}

}  // namespace

int count_accelerators(const std::string& root) {
  if (const int nvidia = count_numbered(root + "/dev", "nvidia"); nvidia > 0) return nvidia;
  // The device files appear only when the devices are first used.
  const auto known = nvidia_gpus(root).size();
  if (known > 0) return static_cast<int>(known);
  if (const int ascend = count_numbered(root + "/dev", "davinci"); ascend > 0) return ascend;
  return count_amd(root);
}

HostResources resources_of_host(const Environment& environment) {
  HostResources resources;
  resources.cores = usable_cores();
  resources.gpus = count_accelerators();
  const auto visible = visible_devices(environment);
  if (!visible.variable.empty()) resources.gpus = std::min(resources.gpus, visible.count);
  return resources;
}

CoreBinding parse_core_binding(const std::string& text, const std::string& what) {
  static const std::vector<std::string> kNames = {"node", "socket", "exclusive", "core-complex"};
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  if (found != kNames.end()) return static_cast<CoreBinding>(found - kNames.begin() + 1);
  refuse_binding(fmt::format("{}: '{}' is none of node, socket, exclusive, core-complex{}", what,
                             text, did_you_mean(text, kNames)));
}

std::vector<CpuIds> cpus_of_ranks(const CpuTopology& topology, CoreBinding binding, int ranks) {
  if (binding == CoreBinding::kNone) return {};
  const auto nodes = node_of_each_rank(topology, ranks);
  std::vector<CpuIds> result;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    const int node = nodes[rank];
    const auto begin = nodes.begin();
    const auto index =
        static_cast<size_t>(std::count(begin, begin + static_cast<std::ptrdiff_t>(rank), node));
    const auto count = static_cast<size_t>(std::count(begin, nodes.end(), node));
    CpuIds own;
    switch (binding) {
      case CoreBinding::kSocket:
        own = of_socket(topology, node);
        break;
      case CoreBinding::kExclusive:
        own = exclusive(topology, node, index, count);
        break;
      case CoreBinding::kCoreComplex:
        own = core_complex(topology, node, index);
        break;
      default:
        own = ids_where(topology, [&](const Cpu& cpu) { return cpu.node == node; });
    }
    if (own.empty()) {
      refuse_binding(fmt::format(
          "no CPU of NUMA node {}, where local rank {}'s GPU is, may be used here", node, rank));
    }
    result.push_back(std::move(own));
  }
  return result;
}

}  // namespace lockstep::inline internal
