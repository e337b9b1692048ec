// Speed of pairs, and addresses of Ascend devices.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lockstep/launch/doctor/checks.h"
#include "lockstep/launch/rank_table/check.h"

namespace lockstep::doctor {
namespace {

/// The value that one in five exceeds; of two values the larger.
double good_value(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto place = std::ceil(0.8 * static_cast<double>(values.size() - 1));
  return values[static_cast<size_t>(place)];
}

double good_latency(const std::vector<PairSpeed>& speeds) {
  std::vector<double> values;
  for (const PairSpeed& pair : speeds) {
    if (pair.problem.empty()) values.push_back(-pair.latency_us);
  }
  return values.empty() ? 0 : -good_value(values);
}

double good_bandwidth(const std::vector<PairSpeed>& speeds) {
  std::vector<double> values;
  for (const PairSpeed& pair : speeds) {
    if (pair.problem.empty()) values.push_back(pair.gbit_s);
  }
  return values.empty() ? 0 : good_value(values);
}

/// Hosts all of whose pairs are slow.
std::set<int> slow_hosts(const Findings& all, const std::vector<size_t>& slow) {
  std::set<int> hosts;
  for (int host = 0; host < static_cast<int>(all.hosts.size()); ++host) {
    const auto touches = [&](const PairSpeed& pair) {
      return pair.from == host || pair.to == host;
    };
    const auto pairs = std::count_if(all.speeds.begin(), all.speeds.end(), touches);
    const auto bad = std::count_if(slow.begin(), slow.end(),
                                   [&](size_t index) { return touches(all.speeds[index]); });
    if (pairs > 0 && bad == pairs) hosts.insert(host);
  }
  return hosts.size() < all.hosts.size() ? hosts : std::set<int>();
}

RankTable table_of_hosts(const std::vector<HostFinding>& hosts) {
  RankTable table;
  int rank = 0;
  for (const HostFinding& host : hosts) {
    if (host.facts.device_addresses.empty()) continue;
    RankTableServer server;
    server.server_id = host.name;
    for (const auto& [id, address] : host.facts.device_addresses)
      server.devices.push_back({std::atoi(id.c_str()), address, "", rank++});
    table.servers.push_back(std::move(server));
  }
  table.server_count = static_cast<int>(table.servers.size());
  return table;
}

std::string subnet_fault(const RankTable& table, std::string* fits) {
  std::string text;
  for (const auto generation : {AscendGeneration::kTraining, AscendGeneration::kA2}) {
    const auto faults = check_subnets(table, generation);
    if (faults.empty()) {
      *fits = to_string(generation);
      return "";
    }
    text +=
        fmt::format("{}{} ({} in all)", text.empty() ? "" : "; ", faults[0].text, faults.size());
  }
  return text;
}

/// The device of another host that device `id` of hosts[index] should reach: the one with the same
/// id.
std::string peer_of(const std::vector<HostFinding>& hosts, size_t index, const std::string& id) {
  for (size_t step = 1; step < hosts.size(); ++step) {
    const auto& addresses = hosts[(index + step) % hosts.size()].facts.device_addresses;
    const auto found = addresses.find(id);
    if (found != addresses.end()) return found->second;
  }
  return "PEER";
}

/// Reports of hccn_tool on the links of hosts[index]. A link's health is measured towards the
/// address configured in the device.
void check_links(const std::vector<HostFinding>& hosts, size_t index, CheckRows* rows) {
  const HostFinding& host = hosts[index];
  for (const auto& [id, problem] : host.facts.device_links) {
    rows->push_back(
        {"device links", CheckResult::kFail,
         fmt::format("{}: device {}: {}", host.name, id, problem),
         fmt::format("hccn_tool -i {0} -link -g; hccn_tool -i {0} -netdetect -s address {1}; "
                     "hccn_tool -i {0} -net_health -g",
                     id, peer_of(hosts, index, id))});
  }
  const auto& lone = host.facts.devices_without_switch;
  if (lone.empty()) return;
  rows->push_back(
      {"device switches", CheckResult::kWarn,
       fmt::format("{}: {} {} {} no switch", host.name, lone.size() == 1 ? "device" : "devices",
                   fmt::join(lone, ", "), lone.size() == 1 ? "sees" : "see"),
       fmt::format("hccn_tool -i {} -lldp -g; is its cable in, and LLDP on at the "
                   "switch?",
                   lone[0])});
}

constexpr const char* kSetAddress = "hccn_tool -i N -ip -s address IP netmask 255.255.255.0";

}  // namespace

std::vector<size_t> slow_pairs(const std::vector<PairSpeed>& speeds) {
  const double bandwidth = good_bandwidth(speeds);
  const double latency = good_latency(speeds);
  std::vector<size_t> slow;
  for (size_t i = 0; i < speeds.size(); ++i) {
    const PairSpeed& pair = speeds[i];
    if (!pair.problem.empty()) continue;
    if (pair.gbit_s < 0.4 * bandwidth ||
        (pair.latency_us > 4 * latency && pair.latency_us > latency + 100)) {
      slow.push_back(i);
    }
  }
  return slow;
}

CheckRows check_speeds(const Findings& all) {
  if (all.speeds.empty()) return {};
  const auto slow = slow_pairs(all.speeds);
  const auto hosts = slow_hosts(all, slow);
  const std::string good = fmt::format("{:.2f} Gbit/s and {:.0f} us", good_bandwidth(all.speeds),
                                       good_latency(all.speeds));
  const auto name = [&](int host) { return all.hosts[static_cast<size_t>(host)].name; };
  CheckRows rows;
  for (const int host : hosts) {
    rows.push_back(
        {"speed", CheckResult::kWarn,
         fmt::format("{}: slow with every other host; good pairs have {}", name(host), good),
         "ethtool INTERFACE (speed, duplex); ip -s link (errors); is another job there?"});
  }
  for (const size_t index : slow) {
    const PairSpeed& pair = all.speeds[index];
    if (hosts.contains(pair.from) || hosts.contains(pair.to)) continue;
    rows.push_back(
        {"speed", CheckResult::kWarn,
         fmt::format("{} to {}: {:.2f} Gbit/s, {:.0f} us; good pairs have {}", name(pair.from),
                     name(pair.to), pair.gbit_s, pair.latency_us, good),
         fmt::format("ip route get {} on {}; ethtool INTERFACE", name(pair.to), name(pair.from))});
  }
  for (const PairSpeed& pair : all.speeds) {
    if (pair.problem.empty()) continue;
    rows.push_back({"speed", CheckResult::kWarn,
                    fmt::format("{} to {}: {}", name(pair.from), name(pair.to), pair.problem),
                    "run it again"});
  }
  if (rows.empty()) rows.push_back({"speed", CheckResult::kPass, "good pairs have " + good, ""});
  return rows;
}

CheckRows check_devices(const Findings& all) {
  CheckRows rows;
  const RankTable table = all.table ? *all.table : table_of_hosts(all.hosts);
  if (is_for_ascend(table)) {
    const auto twice = check_addresses(table);
    std::string fits;
    const std::string wrong = subnet_fault(table, &fits);
    if (!twice.empty())
      rows.push_back({"device addresses", CheckResult::kFail, to_string(twice[0]), kSetAddress});
    if (!wrong.empty())
      rows.push_back({"device addresses", CheckResult::kFail, wrong, kSetAddress});
    if (rows.empty()) {
      rows.push_back({"device addresses", CheckResult::kPass,
                      fmt::format("{} devices, as {} has them", num_ranks(table), fits), ""});
    }
  }
  for (size_t i = 0; i < all.hosts.size(); ++i) check_links(all.hosts, i, &rows);
  return rows;
}

}  // namespace lockstep::doctor
