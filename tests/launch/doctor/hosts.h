#pragma once
// Facts of hosts, for tests of the doctor's evaluation.

#include <fmt/format.h>

#include <string>

#include "lockstep/launch/doctor/checks.h"

namespace lockstep::testing {

/// Hosts h1 ... hN on 10.0.0.1 ... without faults.
inline doctor::Findings sound_hosts(int num) {
  using namespace doctor;
  Findings all;
  for (int i = 1; i <= num; ++i) {
    HostFinding host;
    host.name = fmt::format("h{}", i);
    host.command = fmt::format("ssh h{} lockstep doctor --probe", i);
    HostFacts& facts = host.facts;
    facts.hostname = host.name;
    facts.host_id = fmt::format("id{}", i);
    facts.build_id = "lockstep 0.1.0";
    facts.addresses = {"127.0.0.1", fmt::format("10.0.0.{}", i)};
    for (int j = 1; j <= num; ++j)
      facts.names.push_back({fmt::format("h{}", j), {fmt::format("10.0.0.{}", j)}, "", 0.001});
    facts.ports = {{29500, 29500, ""}, {0, 40000, ""}};
    facts.somaxconn = facts.syn_backlog = 4096;
    facts.port_range = "32768\t60999";
    facts.open_files = 65536;
    facts.shm_bytes = int64_t{8} << 30;
    facts.disks = {{"/work", int64_t{100} << 30, int64_t{200} << 30, ""}};
    facts.cores = facts.usable_cores = 64;
    facts.instruction_set = "AVX512";
    facts.libtorch = "1.13.1";
    facts.libtorch_isa = "AVX2";
    facts.firewalls = {{"nft", FirewallState::kOff, "", ""}};
    all.hosts.push_back(host);
  }
  for (int from = 0; from < num; ++from) {
    for (int to = 0; to < num; ++to) {
      if (from == to) continue;
      all.links.push_back({from, to, 29500, ""});
      all.links.push_back({from, to, 0, ""});
      all.speeds.push_back({from, to, 20, 9.4, ""});
    }
  }
  return all;
}

/// "fail names: TEXT
/// " for each row that does not pass; a row without a mend is marked.
inline std::string complaints(const doctor::CheckRows& rows) {
  std::string text;
  for (const auto& row : rows) {
    if (row.result == doctor::CheckResult::kPass) continue;
    text += fmt::format("{} {}: {}\n", doctor::to_string(row.result), row.check, row.text);
    if (row.mend.empty()) text += "  no mend\n";
  }
  return text;
}

}  // namespace lockstep::testing
