#include "lockstep/launch/doctor/rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::doctor {

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
