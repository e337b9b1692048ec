#pragma once
// Facts that `lockstep doctor` gathers of each host and of the links between them: plain data that
// travels as JSON. checks.h evaluates them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/world/rank_table/rank_table.h"

namespace lockstep::doctor {

/// How a host resolves a name.
struct NameLookup {
  std::string name;
  std::vector<std::string> addresses;
  std::string error;  ///< Empty when there are addresses.
  double seconds = 0;
};

struct ListeningPort {
  int asked = 0;   ///< 0: one that the kernel chooses.
  int number = 0;  ///< The real one; 0 if it could not be opened.
  std::string error;
};

struct DiskSpace {
  std::string path;
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
  std::string error;  ///< Why it is missing or not writable.
};

enum class FirewallState { kAbsent, kOff, kOn, kUnknown };

struct Firewall {
  std::string program;  ///< nft, iptables, ufw, firewalld
  FirewallState state = FirewallState::kAbsent;
  std::string detail;  ///< The first rule that drops, or why it is unknown.
  std::string chain;   ///< nft: where that rule is, "inet filter input".
};

/// Facts of one host. Numbers that could not be read are -1.
struct HostFacts {
  std::string hostname;
  std::string host_id;  ///< Equal for several names of one host.
  std::string build_id;
  std::vector<std::string> addresses;
  std::vector<NameLookup> names;  ///< As this host resolves them, in the order of the hosts.
  std::vector<ListeningPort> ports;
  int64_t somaxconn = -1;
  int64_t syn_backlog = -1;
  std::string reserved_ports;  ///< "60000-60015,61000"
  std::string port_range;      ///< "32768\t60999"
  std::string hccl_base_port;  ///< HCCL_IF_BASE_PORT, or empty.
  int64_t open_files = -1;
  int64_t shm_bytes = -1;
  std::vector<DiskSpace> disks;
  int cores = 0;
  int usable_cores = 0;
  double cpu_quota = 0;      ///< Cores that the control group allows; 0: all.
  double cpu_pressure = -1;  ///< See HostLoad.
  double load = -1;          ///< See HostLoad.
  std::string instruction_set;
  std::string libtorch;  ///< Version, or empty where lockstep has no libtorch.
  std::string libtorch_isa;
  std::vector<Firewall> firewalls;
  std::map<std::string, std::string> device_addresses;  ///< Of Ascend devices, by id.
  std::map<std::string, std::string> device_links;      ///< Problems, by id; empty: none.
  std::vector<std::string> devices_without_switch;      ///< Ids of devices that no switch announces
                                                        ///< itself to.
};

struct HostFinding {
  std::string name;     ///< As the user wrote it.
  std::string command;  ///< The command that reaches it.
  std::string problem;  ///< Why it gave no facts; empty if it did.
  HostFacts facts;
  double clock_offset_s = 0;  ///< Its clock less ours.
  double clock_error_s = 0;   ///< The offset is exact within this.
};

/// One try to reach a port of another host.
struct LinkFinding {
  int from = 0;
  int to = 0;
  int port = 0;         ///< As asked.
  std::string problem;  ///< Empty: reached.
};

struct PairSpeed {
  int from = 0;
  int to = 0;
  double latency_us = 0;  ///< Median round trip of 8 bytes.
  double gbit_s = 0;      ///< One stream.
  std::string problem;
};

struct Findings {
  std::vector<HostFinding> hosts;
  std::vector<LinkFinding> links;
  std::vector<PairSpeed> speeds;
  std::optional<RankTable> table;
};

}  // namespace lockstep::doctor
