#include "lockstep/launch/doctor/gather.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "lockstep/base/addresses.h"
#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/processor.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/doctor/firewall.h"
#include "lockstep/launch/rank_table/hccl_tools.h"
#include "lockstep/version.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/cpu_topology.h"
#include "lockstep/world/host_id.h"
#include "lockstep/world/host_load.h"

namespace lockstep::doctor {
namespace {

constexpr auto kProgramTime = 10s;

/// A small file's text without its last newline; "" if it cannot be read.
std::string setting(const std::string& path) {
  std::string text = read_if_there(path);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

int64_t number_setting(const std::string& path) {
  const std::string text = setting(path);
  return text.empty() ? -1 : std::strtoll(text.c_str(), nullptr, 10);
}

/// Addresses of this host's interfaces.
std::vector<std::string> all_addresses() {
  std::vector<std::string> addresses;
  try {
    for (const InterfaceAddress& each : interface_addresses()) addresses.push_back(each.address);
  } catch (const Error&) {
    return {};
  }
  return addresses;
}

/// Space of the folder, or of the nearest parent in which it would be made.
DiskSpace disk_space(const std::string& folder, bool must_exist) {
  DiskSpace space;
  space.path = folder;
  const auto place = must_exist ? std::filesystem::path(folder) : nearest_existing(folder);
  std::error_code ignored;
  struct statvfs info {};
  if (!std::filesystem::is_directory(place, ignored)) {
    space.error = must_exist ? "not there" : place.string() + " is no folder";
  } else if (::access(place.c_str(), W_OK) != 0) {
    space.error = place == folder ? "not writable" : place.string() + " is not writable";
  } else if (::statvfs(place.c_str(), &info) == 0) {
    space.free_bytes = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
    space.total_bytes = static_cast<int64_t>(info.f_blocks) * static_cast<int64_t>(info.f_frsize);
  }
  return space;
}

std::string instruction_set() {
  const auto processor = this_processor();
  return processor.avx512 ? "AVX512" : processor.avx2 ? "AVX2" : "DEFAULT";
}

void ask_libtorch(HostFacts* facts) {
  const auto program = std::filesystem::path(program_folder()) / "lockstep-doctor-libtorch";
  const auto output = run_program({program.string()}, Deadline::after(3 * kProgramTime));
  const auto json = nlohmann::json::parse(output.out, nullptr, false);
  if (output.status != 0 || !json.is_object()) return;
  facts->libtorch = json.value("version", "");
  facts->libtorch_isa = json.value("instruction_set", "");
}

void ask_devices(const std::string& hccn_conf, HostFacts* facts) {
  try {
    const auto told = hccn_conf.empty() ? ask_hccn_tool({0, 8}) : std::nullopt;
    facts->device_addresses =
        told ? *told : read_hccn_conf(hccn_conf.empty() ? kHccnConf : hccn_conf);
    if (!told) return;
  } catch (const Error&) {
    return;  // a host without Ascend devices
  }
  for (const auto& [id, address] : facts->device_addresses) {
    const auto link = run_program({"hccn_tool", "-i", id, "-link", "-g"}, Deadline::after(10s));
    const auto health =
        run_program({"hccn_tool", "-i", id, "-net_health", "-g"}, Deadline::after(10s));
    const auto peers = run_program({"hccn_tool", "-i", id, "-lldp", "-g"}, Deadline::after(10s));
    if (peers.out.find_first_not_of(" \n") == std::string::npos)
      facts->devices_without_switch.push_back(id);
    std::string problem;
    if (link.out.find("UP") == std::string::npos) problem = split(link.out, '\n')[0];
    if (health.out.find("Success") == std::string::npos)
      problem += (problem.empty() ? "" : "; ") + split(health.out, '\n')[0];
    if (!problem.empty()) facts->device_links[id] = problem;
  }
}

std::vector<NameLookup> look_up_all(const std::vector<std::string>& names) {
  constexpr size_t kAtOnce = 64;
  std::vector<NameLookup> lookups(names.size());
  for (size_t begin = 0; begin < names.size(); begin += kAtOnce) {
    std::vector<std::thread> threads;
    for (size_t i = begin; i < std::min(names.size(), begin + kAtOnce); ++i)
      threads.emplace_back([&names, &lookups, i] { lookups[i] = timed_look_up(names[i]); });
    for (auto& thread : threads) thread.join();
  }
  return lookups;
}

void read_limits(HostFacts* facts) {
  facts->somaxconn = number_setting("/proc/sys/net/core/somaxconn");
  facts->syn_backlog = number_setting("/proc/sys/net/ipv4/tcp_max_syn_backlog");
  facts->reserved_ports = setting("/proc/sys/net/ipv4/ip_local_reserved_ports");
  facts->port_range = setting("/proc/sys/net/ipv4/ip_local_port_range");
  facts->hccl_base_port = env_or("HCCL_IF_BASE_PORT", "");
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    constexpr rlim_t kMany = 1 << 30;
    facts->open_files = static_cast<int64_t>(std::min(files.rlim_cur, kMany));
  }
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) == 0)
    facts->shm_bytes = static_cast<int64_t>(shm.f_blocks) * static_cast<int64_t>(shm.f_frsize);
  facts->cores = online_cpus();
  facts->usable_cores = static_cast<int>(usable_cpus().size());
  facts->cpu_quota = cpu_quota();
  const HostLoad load = load_of_host();
  facts->cpu_pressure = load.cpu_pressure;
  facts->load = load.load;
}

}  // namespace

NameLookup timed_look_up(const std::string& name) {
  NameLookup lookup;
  lookup.name = name;
  const auto start = std::chrono::steady_clock::now();
  const AddressList list = look_up(name, 0, &lookup.error);
  lookup.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next)
    lookup.addresses.push_back(in_figures(each->ai_addr));
  return lookup;
}

HostFacts gather_facts(const GatherRequest& request) {
  HostFacts facts;
  facts.hostname = host_name();
  facts.host_id = this_host_id();
  facts.build_id = build_id();
  facts.addresses = all_addresses();
  std::vector<std::string> names = request.names;
  if (std::find(names.begin(), names.end(), facts.hostname) == names.end())
    names.push_back(facts.hostname);
  facts.names = look_up_all(names);
  read_limits(&facts);
  if (!request.folder.empty()) facts.disks.push_back(disk_space(request.folder, true));
  if (!request.log_folder.empty()) facts.disks.push_back(disk_space(request.log_folder, false));
  facts.instruction_set = instruction_set();
  facts.firewalls = firewalls();
  ask_libtorch(&facts);
  ask_devices(request.hccn_conf, &facts);
  return facts;
}

}  // namespace lockstep::doctor
