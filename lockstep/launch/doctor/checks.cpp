#include "lockstep/launch/doctor/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace lockstep::doctor {

CheckRows evaluate(const Findings& all) {
  CheckRows rows;
  const auto add = [&](const CheckRows& more) {
    rows.insert(rows.end(), more.begin(), more.end());
  };
  add(check_answers(all.hosts));
  std::vector<HostFinding> hosts;
  for (const auto& host : all.hosts) {
    if (host.problem.empty()) hosts.push_back(host);
  }
  if (hosts.empty()) return rows;
  add(check_builds(hosts));
  add(check_machines(hosts));
  add(check_names(hosts));
  add(check_ports(hosts));
  add(check_links(all));
  add(check_firewalls(hosts));
  add(check_clocks(hosts));
  add(check_backlogs(hosts));
  add(check_reserved_ports(all));
  add(check_open_files(hosts));
  add(check_shared_memory(hosts));
  add(check_disks(hosts));
  add(check_cores(hosts));
  add(check_load(hosts));
  add(check_libtorch(hosts));
  add(check_instruction_sets(hosts));
  add(check_devices(all));
  add(check_speeds(all));
  return rows;
}

void RowBuilder::add(CheckResult result, const std::string& host, const std::string& text,
                     const std::string& mend) {
  for (Entry& entry : entries_) {
    if (entry.result == result && entry.text == text && entry.mend == mend) {
      entry.hosts.push_back(host);
      return;
    }
  }
  entries_.push_back({result, text, mend, {host}});
}

CheckRows RowBuilder::finish(const std::string& well) const {
  CheckRows rows;
  for (const Entry& entry : entries_) {
    rows.push_back({check_, entry.result,
                    fmt::format("{}: {}", host_list(entry.hosts, num_hosts_), entry.text),
                    entry.mend});
  }
  if (rows.empty()) rows.push_back({check_, CheckResult::kPass, well, ""});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const CheckRow& a, const CheckRow& b) { return a.result > b.result; });
  return rows;
}

std::string to_string(CheckResult result) {
  return result == CheckResult::kPass ? "pass" : result == CheckResult::kWarn ? "warn" : "fail";
}

std::string host_list(const std::vector<std::string>& names, size_t num_hosts) {
  constexpr size_t kShown = 8;
  if (names.size() == num_hosts && num_hosts > 2) return fmt::format("all {} hosts", num_hosts);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size()));
  std::string text = fmt::format("{}", fmt::join(names.begin(), end, ", "));
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

std::string spread(const std::vector<std::pair<std::string, std::string>>& value_of_host) {
  std::vector<std::string> values;
  std::map<std::string, std::vector<std::string>> hosts_of;
  for (const auto& [host, value] : value_of_host) {
    if (!hosts_of.contains(value)) values.push_back(value);
    hosts_of[value].push_back(host);
  }
  if (values.size() == 1) return value_of_host.size() == 1 ? values[0] : values[0] + " everywhere";
  std::string text;
  for (const std::string& value : values) {
    text += fmt::format("{}{} on {}", text.empty() ? "" : "; ", value,
                        host_list(hosts_of[value], value_of_host.size()));
  }
  return text;
}

}  // namespace lockstep::doctor
