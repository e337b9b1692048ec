// Settings and resources of each host: kernel settings, limits, memory, disks, cores.

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/launch/doctor/checks.h"
#include "lockstep/world/host_load.h"

namespace lockstep::doctor {
namespace {

constexpr int kHcclPorts = 16;

/// Connections that can reach one host at once: each host's processes connect to it.
int64_t needed_backlog(size_t num_hosts) {
  return std::clamp<int64_t>(static_cast<int64_t>(num_hosts) * 64, 1024, 65535);
}

void check_backlog(const HostFinding& host, const char* name, int64_t value, int64_t needed,
                   RowBuilder* rows) {
  if (value < 0 || value >= needed) return;
  rows->add(CheckResult::kWarn, host.name,
            fmt::format("net.{} is {}, below {}: connections can fail at random when all start "
                        "at once",
                        name, value, needed),
            fmt::format("sudo sysctl -w net.{}=65535", name));
}

/// The kernel's ephemeral port range; nothing if it cannot be read.
std::optional<std::pair<int, int>> port_range(const HostFacts& facts) {
  int first = 0;
  int last = 0;
  if (std::sscanf(facts.port_range.c_str(), "%d %d", &first, &last) != 2) return std::nullopt;
  return std::pair(first, last);
}

bool has_devices(const Findings& all) {
  if (all.table && is_for_ascend(*all.table)) return true;
  return std::any_of(all.hosts.begin(), all.hosts.end(), [](const HostFinding& host) {
    return !host.facts.device_addresses.empty() || !host.facts.hccl_base_port.empty();
  });
}

/// Ports that a job needs and any connection could take. One setting reserves all of them, because
/// a second value would replace the first.
class OpenPorts {
 public:
  explicit OpenPorts(const HostFacts& facts)
      : own_(port_range(facts)), reserved_(facts.reserved_ports) {}

  void want(int first, int last, const char* whose) {
    if (!own_ || last < own_->first || first > own_->second) return;
    if (covers_ports(reserved_, first, last)) return;
    const std::string range =
        first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    text_ += fmt::format("{}{} {}", text_.empty() ? "" : ", ", whose, range);
    reserved_ += (reserved_.empty() ? "" : ",") + range;
  }

  void report(const std::string& host, RowBuilder* rows) const {
    if (text_.empty()) return;
    rows->add(CheckResult::kWarn, host, text_ + " can be taken by any connection of the host",
              "sudo sysctl -w net.ipv4.ip_local_reserved_ports=" + reserved_);
  }

 private:
  std::optional<std::pair<int, int>> own_;
  std::string reserved_;
  std::string text_;
};

/// HCCL_IF_BASE_PORT, or HCCL's default; nothing if HCCL would refuse it.
std::optional<int> hccl_base(const std::string& variable) {
  if (variable.empty()) return 60000;
  char* end = nullptr;
  const long port = std::strtol(variable.c_str(), &end, 10);
  if (*end != '\0' || port < 1024 || port > 65520) return std::nullopt;
  return static_cast<int>(port);
}

}  // namespace

std::string ports_of_job(bool devices, const std::string& hccl_base_port) {
  const auto base = hccl_base(hccl_base_port);
  if (!devices || !base) return "29500,0";
  return fmt::format("29500,{}-{},0", *base, *base + kHcclPorts - 1);
}

bool covers_ports(const std::string& reserved, int first, int last) {
  std::vector<std::pair<int, int>> ranges;
  for (const std::string& part : split(reserved, ',')) {
    int low = 0;
    int high = 0;
    const int got = std::sscanf(part.c_str(), "%d-%d", &low, &high);
    if (got >= 1) ranges.emplace_back(low, got == 2 ? high : low);
  }
  std::sort(ranges.begin(), ranges.end());
  for (const auto& [low, high] : ranges) {
    if (low <= first && first <= high) first = high + 1;
  }
  return first > last;
}

CheckRows check_backlogs(const std::vector<HostFinding>& hosts) {
  RowBuilder rows("backlogs", hosts.size());
  const int64_t needed = needed_backlog(hosts.size());
  for (const auto& host : hosts) {
    check_backlog(host, "core.somaxconn", host.facts.somaxconn, needed, &rows);
    check_backlog(host, "ipv4.tcp_max_syn_backlog", host.facts.syn_backlog, needed, &rows);
  }
  return rows.finish(fmt::format("somaxconn and tcp_max_syn_backlog are {} or more", needed));
}

CheckRows check_reserved_ports(const Findings& all) {
  RowBuilder rows("reserved ports", all.hosts.size());
  const bool devices = has_devices(all);
  for (const auto& host : all.hosts) {
    if (!host.problem.empty()) continue;
    OpenPorts open(host.facts);
    const auto base = hccl_base(host.facts.hccl_base_port);
    if (!base) {
      rows.add(CheckResult::kFail, host.name,
               fmt::format("HCCL_IF_BASE_PORT={} is no port from 1024 to 65520",
                           host.facts.hccl_base_port),
               "export HCCL_IF_BASE_PORT=60000");
    } else if (devices) {
      open.want(*base, *base + kHcclPorts - 1, "HCCL's ports");
    }
    for (const ListeningPort& port : host.facts.ports) {
      if (port.asked != 0) open.want(port.asked, port.asked, "port");
    }
    open.report(host.name, &rows);
  }
  return rows.finish(devices ? "HCCL's ports are kept free" : "none needed");
}

CheckRows check_open_files(const std::vector<HostFinding>& hosts) {
  RowBuilder rows("open files", hosts.size());
  int64_t least = -1;
  for (const auto& host : hosts) {
    const int64_t limit = host.facts.open_files;
    if (limit >= 0 && (least < 0 || limit < least)) least = limit;
    if (limit >= 0 && limit < 1024) {
      rows.add(limit < 256 ? CheckResult::kFail : CheckResult::kWarn, host.name,
               fmt::format("{} descriptors a process are few", limit), "ulimit -n 65535");
    }
  }
  return rows.finish(fmt::format("{} a process or more", least));
}

CheckRows check_shared_memory(const std::vector<HostFinding>& hosts) {
  constexpr int64_t kWanted = int64_t{1} << 30;
  RowBuilder rows("/dev/shm", hosts.size());
  int64_t least = -1;
  for (const auto& host : hosts) {
    const int64_t bytes = host.facts.shm_bytes;
    if (bytes >= 0 && (least < 0 || bytes < least)) least = bytes;
    if (bytes >= kWanted) continue;
    rows.add(CheckResult::kWarn, host.name,
             bytes < 0 ? "not there: PyTorch's data loaders need it"
                       : format_bytes(bytes) +
                             " is little for PyTorch's data loaders (lockstep "
                             "itself needs none)",
             "sudo mount -o remount,size=8G /dev/shm; of a container: docker run --shm-size=8g");
  }
  return rows.finish(format_bytes(least) + " or more");
}

CheckRows check_disks(const std::vector<HostFinding>& hosts) {
  constexpr int64_t kLittle = int64_t{2} << 30;
  constexpr int64_t kNone = int64_t{64} << 20;
  RowBuilder rows("disks", hosts.size());
  int64_t least = -1;
  for (const auto& host : hosts) {
    for (const DiskSpace& disk : host.facts.disks) {
      if (!disk.error.empty()) {
        rows.add(CheckResult::kFail, host.name, disk.path + ": " + disk.error,
                 fmt::format("mkdir -p {0}; chmod u+w {0}", disk.path));
        continue;
      }
      if (least < 0 || disk.free_bytes < least) least = disk.free_bytes;
      if (disk.free_bytes >= kLittle) continue;
      rows.add(disk.free_bytes < kNone ? CheckResult::kFail : CheckResult::kWarn, host.name,
               fmt::format("{} has {} free", disk.path, format_bytes(disk.free_bytes)),
               "make room, or choose another folder with --log_dir");
    }
  }
  return rows.finish(format_bytes(std::max<int64_t>(least, 0)) + " free or more");
}

CheckRows check_cores(const std::vector<HostFinding>& hosts) {
  RowBuilder rows("cores", hosts.size());
  std::vector<std::pair<std::string, std::string>> counts;
  for (const auto& host : hosts) {
    const HostFacts& facts = host.facts;
    counts.emplace_back(host.name, std::to_string(facts.usable_cores));
    if (facts.usable_cores < facts.cores) {
      rows.add(CheckResult::kWarn, host.name,
               fmt::format("bound to {} of {} cores", facts.usable_cores, facts.cores),
               fmt::format("taskset -c 0-{} lockstep run ... (or --cpuset-cpus of the container, "
                           "--cpu-bind=none of srun)",
                           facts.cores - 1));
    }
    if (facts.cpu_quota > 0 && facts.cpu_quota + 0.05 < facts.usable_cores) {
      rows.add(CheckResult::kWarn, host.name,
               fmt::format("the control group gives {:.1f} of {} cores", facts.cpu_quota,
                           facts.usable_cores),
               "raise the container's CPU limit, or start fewer processes and threads");
    }
  }
  return rows.finish(spread(counts));
}

CheckRows check_load(const std::vector<HostFinding>& hosts) {
  RowBuilder rows("load", hosts.size());
  for (const auto& host : hosts) {
    HostLoad load;
    load.cpu_pressure = host.facts.cpu_pressure;
    load.load = host.facts.load;
    load.cores = host.facts.cores;
    if (!load.busy()) continue;
    rows.add(
        CheckResult::kWarn, host.name, "busy: " + load.text(),
        "end the programs there (ps -eo pcpu,user,args --sort=-pcpu | head), or measure later");
  }
  return rows.finish("no host is busy with something else");
}

}  // namespace lockstep::doctor
