#include "lockstep/launch/doctor/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/counted.h"
#include "lockstep/launch/doctor/facts_json.h"

namespace lockstep::doctor {
namespace {

constexpr size_t kMatrixHosts = 16;  // wider ones are left to --json

std::string mark(CheckResult result, bool terminal) {
  if (!terminal) return to_string(result);
  switch (result) {
    case CheckResult::kPass:
      return "\033[32m\u2713\033[0m";
    case CheckResult::kWarn:
      return "\033[33m!\033[0m";
    default:
      return "\033[31m\u2717\033[0m";
  }
}

size_t count_of(const CheckRows& rows, CheckResult result) {
  return static_cast<size_t>(std::count_if(
      rows.begin(), rows.end(), [&](const CheckRow& row) { return row.result == result; }));
}

std::string table_text(const CheckRows& rows, bool terminal) {
  size_t width = 0;
  for (const CheckRow& row : rows) width = std::max(width, row.check.size());
  const std::string indent((terminal ? 1U : 4U) + 2 + width + 2, ' ');
  std::string text;
  for (const CheckRow& row : rows) {
    text += fmt::format("{}  {:<{}}  {}\n", mark(row.result, terminal), row.check, width, row.text);
    if (!row.mend.empty()) text += fmt::format("{}mend: {}\n", indent, row.mend);
  }
  return text;
}

/// One row and one column a host; `value` of each measured pair.
template <class Value>
std::string matrix_text(const Findings& all, const std::string& title, const Value& value) {
  const size_t num = all.hosts.size();
  std::vector<std::vector<std::string>> cells(num, std::vector<std::string>(num, "-"));
  const auto slow = slow_pairs(all.speeds);
  for (size_t i = 0; i < all.speeds.size(); ++i) {
    const PairSpeed& pair = all.speeds[i];
    const bool is_slow = std::find(slow.begin(), slow.end(), i) != slow.end();
    cells[static_cast<size_t>(pair.from)][static_cast<size_t>(pair.to)] =
        pair.problem.empty() ? value(pair) + (is_slow ? " <" : "  ") : "failed";
  }
  size_t width = 8;
  for (const auto& host : all.hosts) width = std::max(width, host.name.size() + 2);
  std::string text = fmt::format("\n{:<{}}", title, std::max(width, title.size() + 1));
  const size_t first = std::max(width, title.size() + 1);
  for (const auto& host : all.hosts) text += fmt::format("{:>{}}", host.name + "  ", width + 2);
  for (size_t i = 0; i < num; ++i) {
    while (text.back() == ' ') text.pop_back();
    text += fmt::format("\n{:<{}}", "  " + all.hosts[i].name, first);
    for (size_t j = 0; j < num; ++j)
      text += fmt::format("{:>{}}", i == j ? "-  " : cells[i][j], width + 2);
  }
  while (text.back() == ' ') text.pop_back();
  return text + "\n";
}

}  // namespace

std::string report_text(const Findings& findings, const CheckRows& rows, bool terminal) {
  std::string text = table_text(rows, terminal);
  if (!findings.speeds.empty() && findings.hosts.size() <= kMatrixHosts) {
    text += matrix_text(findings, "Gbit/s from, to",
                        [](const PairSpeed& pair) { return fmt::format("{:.2f}", pair.gbit_s); });
    text += matrix_text(findings, "round trip, us", [](const PairSpeed& pair) {
      return fmt::format("{:.0f}", pair.latency_us);
    });
    if (!slow_pairs(findings.speeds).empty()) text += "  < slow\n";
  }
  const auto warnings = static_cast<int64_t>(count_of(rows, CheckResult::kWarn));
  return text + fmt::format("\n{} passed, {}, {} failed\n", count_of(rows, CheckResult::kPass),
                            counted(warnings, "warning"), count_of(rows, CheckResult::kFail));
}

std::string report_json(const Findings& findings, const CheckRows& rows) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const CheckRow& row : rows) {
    checks.push_back({{"check", row.check},
                      {"verdict", to_string(row.result)},
                      {"text", row.text},
                      {"mend", row.mend}});
  }
  nlohmann::ordered_json hosts = nlohmann::ordered_json::array();
  for (const HostFinding& host : findings.hosts) {
    hosts.push_back({{"name", host.name},
                     {"command", host.command},
                     {"problem", host.problem},
                     {"clock_offset_s", host.clock_offset_s},
                     {"clock_error_s", host.clock_error_s},
                     {"facts", nlohmann::json(host.facts)}});
  }
  const auto name = [&](int host) { return findings.hosts[static_cast<size_t>(host)].name; };
  nlohmann::ordered_json links = nlohmann::ordered_json::array();
  for (const LinkFinding& link : findings.links) {
    links.push_back({{"from", name(link.from)},
                     {"to", name(link.to)},
                     {"port", link.port},
                     {"problem", link.problem}});
  }
  const auto slow = slow_pairs(findings.speeds);
  nlohmann::ordered_json pairs = nlohmann::ordered_json::array();
  for (size_t i = 0; i < findings.speeds.size(); ++i) {
    const PairSpeed& pair = findings.speeds[i];
    pairs.push_back({{"from", name(pair.from)},
                     {"to", name(pair.to)},
                     {"latency_us", pair.latency_us},
                     {"gbit_s", pair.gbit_s},
                     {"slow", std::find(slow.begin(), slow.end(), i) != slow.end()},
                     {"problem", pair.problem}});
  }
  CheckResult worst = CheckResult::kPass;
  for (const CheckRow& row : rows) worst = std::max(worst, row.result);
  const nlohmann::ordered_json report = {{"verdict", to_string(worst)},
                                         {"checks", std::move(checks)},
                                         {"hosts", std::move(hosts)},
                                         {"links", std::move(links)},
                                         {"pairs", std::move(pairs)}};
  return report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int exit_status_of(const CheckRows& rows) {
  return count_of(rows, CheckResult::kFail) > 0 ? 1 : 0;
}

}  // namespace lockstep::doctor
