#pragma once
// Evaluation of the facts: pure functions, each for one or more rows of the doctor's table, which
// RowBuilder builds.

#include <string>
#include <utility>
#include <vector>

#include "lockstep/launch/doctor/facts.h"

namespace lockstep::doctor {

enum class CheckResult { kPass, kWarn, kFail };

std::string to_string(CheckResult result);  ///< "pass", "warn", "fail"

struct CheckRow {
  std::string check;  ///< "name resolution"
  CheckResult result = CheckResult::kPass;
  std::string text;  ///< The finding, and its hosts.
  std::string mend;  ///< The command or action that mends it; empty if all is well.
};

using CheckRows = std::vector<CheckRow>;

/// All rows, in the order in which a user should mend them. Only the first row covers hosts that
/// gave no facts.
CheckRows evaluate(const Findings& findings);

// The single checks. `hosts` are hosts that gave facts.
CheckRows check_answers(const std::vector<HostFinding>& hosts);
CheckRows check_builds(const std::vector<HostFinding>& hosts);
CheckRows check_machines(const std::vector<HostFinding>& hosts);
/// Each host must resolve each name to an address that the others reach; 127.x is right only with a
/// single host.
CheckRows check_names(const std::vector<HostFinding>& hosts);
CheckRows check_ports(const std::vector<HostFinding>& hosts);
CheckRows check_links(const Findings& findings);
CheckRows check_firewalls(const std::vector<HostFinding>& hosts);
/// An offset above half a second (less the measurement's error) harms certificates and logs. One
/// above 30 s breaks time-outs of job managers.
CheckRows check_clocks(const std::vector<HostFinding>& hosts);
/// somaxconn and tcp_max_syn_backlog: each host can open 64 connections at once; at least 1,024 in
/// all.
CheckRows check_backlogs(const std::vector<HostFinding>& hosts);
/// HCCL's 16 ports from 60000 (or HCCL_IF_BASE_PORT) if there are Ascend devices, and fixed ports
/// within the kernel's ephemeral range.
CheckRows check_reserved_ports(const Findings& findings);
CheckRows check_open_files(const std::vector<HostFinding>& hosts);
CheckRows check_shared_memory(const std::vector<HostFinding>& hosts);
CheckRows check_disks(const std::vector<HostFinding>& hosts);
CheckRows check_cores(const std::vector<HostFinding>& hosts);
/// Load by other programs on the hosts now: it distorts measured figures.
CheckRows check_load(const std::vector<HostFinding>& hosts);
CheckRows check_libtorch(const std::vector<HostFinding>& hosts);
CheckRows check_instruction_sets(const std::vector<HostFinding>& hosts);
CheckRows check_speeds(const Findings& findings);
/// Addresses of Ascend devices (the table's, else the hosts' own) must be unique and of the subnets
/// that one generation needs. Their links must be up. No row without such devices.
CheckRows check_devices(const Findings& findings);

/// Pairs with a bandwidth below 40 % of fast pairs, or a latency of 4 times theirs and 100 us
/// above. Returns indices into `speeds`.
std::vector<size_t> slow_pairs(const std::vector<PairSpeed>& speeds);

/// The ports to try by default, in the format of --ports: torch's, and one of the kernel's choice,
/// as agents and ranks use. Hosts with Ascend devices add HCCL's, from HCCL_IF_BASE_PORT.
std::string ports_of_job(bool devices, const std::string& hccl_base_port);

/// "60000-60015,61000" covers [first, last].
bool covers_ports(const std::string& reserved, int first, int last);

/// "h1, h2" or "all 16 hosts"; at most 8 names.
std::string host_list(const std::vector<std::string>& names, size_t num_hosts);

/// Values and their hosts, e.g. "4096 everywhere" or "128 on h1; 4096 on h2, h3".
std::string spread(const std::vector<std::pair<std::string, std::string>>& value_of_host);

/// Rows of one check: each fault with all its hosts in one row; without faults, one row that
/// passes.
class RowBuilder {
 public:
  RowBuilder(std::string check, size_t num_hosts)
      : check_(std::move(check)), num_hosts_(num_hosts) {}

  /// Adds `text` of `host`; rows of equal result, text and mend become one.
  void add(CheckResult result, const std::string& host, const std::string& text,
           const std::string& mend);
  /// The rows, or the one that passes with `well`.
  CheckRows finish(const std::string& well) const;

 private:
  struct Entry {
    CheckResult result;
    std::string text;
    std::string mend;
    std::vector<std::string> hosts;
  };
  std::string check_;
  size_t num_hosts_;
  std::vector<Entry> entries_;
};

}  // namespace lockstep::doctor
