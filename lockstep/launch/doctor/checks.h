#pragma once
// What to make of the facts: pure functions, one row of the doctor's table or more each.

#include <string>
#include <vector>

#include "lockstep/launch/doctor/facts.h"

namespace lockstep::doctor {

enum class Verdict { kPass, kWarn, kFail };

std::string to_string(Verdict verdict);  ///< "pass", "warn", "fail"

struct CheckRow {
  std::string check;  ///< "name resolution"
  Verdict verdict = Verdict::kPass;
  std::string text;  ///< What was found, and on which hosts.
  std::string mend;  ///< The command, or what to do; empty when all is well.
};

using CheckRows = std::vector<CheckRow>;

/// All rows, in the order in which a user should mend them. Only hosts that gave facts are
/// evaluated beyond the first row.
CheckRows evaluate(const Findings& findings);

// The single checks. `hosts` have given their facts.
CheckRows check_answers(const std::vector<HostFinding>& hosts);
CheckRows check_builds(const std::vector<HostFinding>& hosts);
CheckRows check_machines(const std::vector<HostFinding>& hosts);
/// Each host must know each name by an address that the others reach; 127.x only of itself alone.
CheckRows check_names(const std::vector<HostFinding>& hosts);
CheckRows check_ports(const std::vector<HostFinding>& hosts);
CheckRows check_links(const Findings& findings);
CheckRows check_firewalls(const std::vector<HostFinding>& hosts);
/// Above half a second (less what the measurement is off) certificates and logs suffer; above 30 s,
/// time-outs of job managers.
CheckRows check_clocks(const std::vector<HostFinding>& hosts);
/// somaxconn and tcp_max_syn_backlog: 64 connections a host can come at once, 1,024 at the least.
CheckRows check_backlogs(const std::vector<HostFinding>& hosts);
/// HCCL's 16 ports from 60000 (or HCCL_IF_BASE_PORT), where there are Ascend devices, and fixed
/// ports within the range from which the kernel takes connections' own ports.
CheckRows check_reserved_ports(const Findings& findings);
CheckRows check_open_files(const std::vector<HostFinding>& hosts);
CheckRows check_shared_memory(const std::vector<HostFinding>& hosts);
CheckRows check_disks(const std::vector<HostFinding>& hosts);
CheckRows check_cores(const std::vector<HostFinding>& hosts);
/// What others have to do on the hosts now: figures measured beside it mean little.
CheckRows check_load(const std::vector<HostFinding>& hosts);
CheckRows check_libtorch(const std::vector<HostFinding>& hosts);
CheckRows check_instruction_sets(const std::vector<HostFinding>& hosts);
CheckRows check_speeds(const Findings& findings);
/// Addresses of Ascend devices (the table's, else the hosts' own): unique, and of the subnets that
/// one generation wants; their links up. No row where there are none.
CheckRows check_devices(const Findings& findings);

/// Pairs whose bandwidth is below 40 % of what fast ones have, or whose latency is 4 times theirs
/// and 100 us above. Indices into `speeds`.
std::vector<size_t> slow_pairs(const std::vector<PairSpeed>& speeds);

/// The ports to try where the user names none, as --ports has them: torch's, and one of the
/// kernel's choice as agents and ranks use; of hosts with Ascend devices HCCL's too, where
/// HCCL_IF_BASE_PORT puts them.
std::string ports_of_job(bool devices, const std::string& hccl_base_port);

/// "60000-60015,61000" covers [first, last].
bool covers_ports(const std::string& reserved, int first, int last);

/// "h1, h2" or "all 16 hosts"; at most 8 names.
std::string host_list(const std::vector<std::string>& names, size_t num_hosts);

}  // namespace lockstep::doctor
