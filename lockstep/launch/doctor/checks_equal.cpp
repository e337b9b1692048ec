// Hosts that answer, and facts that must be equal on all hosts.

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "lockstep/base/counted.h"
#include "lockstep/launch/doctor/checks.h"

namespace lockstep::doctor {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

bool all_equal(const Values& values) {
  for (const auto& [host, value] : values) {
    if (value != values[0].second) return false;
  }
  return true;
}

CheckRows one_row(std::string check, CheckResult result, std::string text, std::string mend = "") {
  return {{std::move(check), result, std::move(text), std::move(mend)}};
}

}  // namespace

CheckRows check_answers(const std::vector<HostFinding>& hosts) {
  CheckRows rows;
  for (const HostFinding& host : hosts) {
    if (host.problem.empty()) continue;
    rows.push_back({"answers", CheckResult::kFail, host.name + ": " + host.problem,
                    "run by hand: " + host.command});
  }
  if (!rows.empty()) return rows;
  return one_row("answers", CheckResult::kPass,
                 counted(static_cast<int64_t>(hosts.size()), "host"));
}

CheckRows check_builds(const std::vector<HostFinding>& hosts) {
  Values values;
  for (const auto& host : hosts) values.emplace_back(host.name, host.facts.build_id);
  if (all_equal(values)) return one_row("lockstep", CheckResult::kPass, spread(values));
  return one_row("lockstep", CheckResult::kFail,
                 spread(values) + "; two builds refuse each other at their first hello",
                 "install the same build on every host");
}

CheckRows check_machines(const std::vector<HostFinding>& hosts) {
  std::map<std::string, std::vector<std::string>> names_of;
  for (const auto& host : hosts) names_of[host.facts.host_id].push_back(host.name);
  CheckRows rows;
  for (const auto& [id, names] : names_of) {
    if (names.size() < 2) continue;
    rows.push_back({"machines", CheckResult::kWarn,
                    fmt::format("{} are one machine", fmt::join(names, ", ")),
                    "name each host once; give it more processes with --nproc_per_node"});
  }
  return rows;
}

CheckRows check_libtorch(const std::vector<HostFinding>& hosts) {
  Values values;
  size_t missing = 0;
  for (const auto& host : hosts) {
    const bool none = host.facts.libtorch.empty();
    missing += none ? 1 : 0;
    values.emplace_back(host.name, none ? "none" : host.facts.libtorch);
  }
  if (missing == hosts.size()) {
    return one_row("libtorch", CheckResult::kWarn,
                   "lockstep has none here (lockstep-doctor-libtorch is "
                   "not beside it)",
                   "install a lockstep that was built with libtorch, if programs "
                   "need it");
  }
  if (all_equal(values)) return one_row("libtorch", CheckResult::kPass, spread(values));
  return one_row("libtorch", CheckResult::kFail, spread(values),
                 "install the same version everywhere");
}

CheckRows check_instruction_sets(const std::vector<HostFinding>& hosts) {
  Values values;
  for (const auto& host : hosts) {
    const auto& facts = host.facts;
    values.emplace_back(host.name,
                        facts.libtorch_isa.empty() ? facts.instruction_set : facts.libtorch_isa);
  }
  if (all_equal(values)) return one_row("instruction set", CheckResult::kPass, spread(values));
  return one_row("instruction set", CheckResult::kWarn,
                 spread(values) + "; results will not have the same bits on every host",
                 "export ATEN_CPU_CAPABILITY=default (or the lowest of them) on every host");
}

CheckRows check_clocks(const std::vector<HostFinding>& hosts) {
  constexpr double kWarn = 0.5;
  constexpr double kFail = 30;
  RowBuilder rows("clocks", hosts.size());
  double worst = 0;
  for (const auto& host : hosts) {
    const double sure = std::max(0.0, std::abs(host.clock_offset_s) - host.clock_error_s);
    worst = std::max(worst, sure);
    if (sure <= kWarn) continue;
    rows.add(sure > kFail ? CheckResult::kFail : CheckResult::kWarn, host.name,
             fmt::format("{:.1f} s {}", std::abs(host.clock_offset_s),
                         host.clock_offset_s > 0 ? "ahead" : "behind"),
             "sudo systemctl restart chronyd (or systemd-timesyncd), then chronyc makestep");
  }
  return rows.finish(hosts.size() < 2 ? "one host"
                                      : fmt::format("within {:.0f} ms of here", worst * 1e3));
}

}  // namespace lockstep::doctor
