#include "lockstep/launch/doctor/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "lockstep/base/env.h"
#include "lockstep/base/options.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/doctor/checks.h"
#include "lockstep/launch/doctor/examine.h"
#include "lockstep/launch/doctor/probe.h"
#include "lockstep/launch/doctor/report.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/start/host_slots.h"

namespace lockstep::doctor {
namespace {

struct DoctorRequest {
  ExamineOptions examine;
  std::string rank_table;
  std::optional<std::string> ports;
  bool json = false, probe = false, help = false;
};

[[noreturn]] void refuse_doctor(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, "lockstep doctor: " + text);
}

std::vector<int> parse_ports(const std::string& list) {
  constexpr size_t kMaxPorts = 256;
  std::vector<int> ports;
  for (const std::string& part : split(list, ',')) {
    const auto ends = split(part, '-');
    const auto first = parse_int(ends[0], 0, 65535, "--ports");
    const auto last = ends.size() == 1 ? first : parse_int(ends[1], first, 65535, "--ports");
    if (ends.size() > 2) refuse_doctor("--ports '" + part + "': write PORT or FIRST-LAST");
    for (auto port = first; port <= last; ++port) ports.push_back(static_cast<int>(port));
    if (ports.size() > kMaxPorts) refuse_doctor(fmt::format("--ports: at most {}", kMaxPorts));
  }
  return ports;
}

std::vector<std::string> parse_hosts(const std::string& list) {
  std::vector<std::string> hosts;
  // The same syntax as `lockstep run -H`; the numbers of slots do not matter here.
  for (const auto& [host, slots] : host_list_items(list, "lockstep doctor: --hosts")) {
    if (std::find(hosts.begin(), hosts.end(), host) != hosts.end())
      refuse_doctor("--hosts: '" + host + "' is there twice");
    hosts.push_back(host);
  }
  return hosts;
}

OptionGroup<DoctorRequest> doctor_options() {
  using R = DoctorRequest;
  using Text = const std::string&;
  constexpr auto kValue = OptionKind::kValue;
  constexpr auto kFlag = OptionKind::kFlag;
  return {
      "",
      {{"hosts", 0, kValue, "H1,H2,...",
        "the hosts of the job, also as Slurm's n[01-03,7], each reached by --rsh (default: this "
        "one alone)",
        [](R& request, Text value, Text) { request.examine.hosts = parse_hosts(value); }},
       {"rank_table", 0, kValue, "FILE", "hosts and device addresses of an Ascend job",
        set_text<&R::rank_table>},
       {"ports", 0, kValue, "LIST",
        "ports to try, e.g. 29500,60000-60015; 0 is one that the kernel chooses (default {}; "
        "of an Ascend job also HCCL's 16, from HCCL_IF_BASE_PORT or 60000)",
        set_text<&R::ports>, [](const R&) { return std::vector{ports_of_job(false, "")}; }},
       {"rsh", 0, kValue, "COMMAND",
        "command to reach another host; {host} in it is its name (default: ssh that asks no "
        "questions)",
        [](R& request, Text value, Text) { request.examine.rsh = value; }},
       {"lockstep", 0, kValue, "PATH",
        "this program on the other hosts (default: the same path as here)",
        [](R& request, Text value, Text) { request.examine.lockstep = value; }},
       {"log_dir", 0, kValue, "DIR", "a folder that needs room, besides the current one",
        [](R& request, Text value, Text) {
          request.examine.log_folder = std::filesystem::absolute(value).string();
        }},
       {"hccn_conf", 0, kValue, "FILE",
        "addresses of Ascend devices (default: hccn_tool, else /etc/hccn.conf)",
        [](R& request, Text value, Text) { request.examine.hccn_conf = value; }},
       {"seconds", 0, kValue, "S",
        "how long each pair's bandwidth is measured (default {}); 0: not at all",
        [](R& request, Text value, Text what) {
          request.examine.seconds = parse_real(value, 0, 60, what);
        },
        [](const R& request) { return std::vector{default_text(request.examine.seconds)}; }},
       {"timeout", 0, kValue, "S", "for each answer of a host (default {})",
        [](R& request, Text value, Text what) {
          request.examine.timeout = std::chrono::milliseconds(
              static_cast<int64_t>(1000 * parse_real(value, 0, 3600, what)));
        },
        [](const R& request) {
          using std::chrono::milliseconds;
          const auto timeout = std::chrono::duration_cast<milliseconds>(request.examine.timeout);
          return std::vector{default_text(timeout)};
        }},
       {"json", 0, kFlag, "", "for programs", set_flag<&R::json>},
       {"probe", 0, kFlag, "", "", set_flag<&R::probe>},
       help_option<R>()}};
}

DoctorRequest parse_doctor(const std::vector<std::string>& words) {
  DoctorRequest request;
  ExamineOptions& examine = request.examine;
  examine.rsh = RunOptions().rsh;
  examine.folder = std::filesystem::current_path().string();
  examine.lockstep = own_program();
  const auto rest = read_request(words, doctor_options().options, "lockstep doctor", request);
  if (!rest.empty()) refuse_doctor("'" + rest[0] + "' is neither an option nor a check");
  examine.measure = examine.seconds > 0;
  if (request.ports) examine.ports = parse_ports(*request.ports);
  if (examine.rsh.find_first_not_of(' ') == std::string::npos)
    refuse_doctor("--rsh: which command?");
  return request;
}

}  // namespace

HelpPage doctor_help() {
  return {
      {{"lockstep doctor [OPTIONS]", "is everything fit for a job, on this host or on several"},
       {"lockstep doctor NAME", "one of the checks below"}},
      "Ends with 1 when a check fails. Nothing is changed on any host, and nothing left running.",
      {help_group(doctor_options())},
      ""};
}

int doctor_command(const std::vector<std::string>& words) {
  DoctorRequest request = parse_doctor(words);
  if (request.help) return print_help(doctor_help());
  if (request.probe) return probe();
  std::optional<RankTable> table;
  if (!request.rank_table.empty()) {
    table = load_rank_table(request.rank_table);
    if (request.examine.hosts.empty()) {
      for (const RankTableServer& server : table->servers)
        request.examine.hosts.push_back(server.server_id);
    }
  }
  if (!request.ports) {
    request.examine.ports =
        parse_ports(ports_of_job(table && is_for_ascend(*table), env_or("HCCL_IF_BASE_PORT", "")));
  }
  Findings findings = examine(request.examine);
  findings.table = std::move(table);
  const CheckRows rows = evaluate(findings);
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 && env_or("TERM", "dumb") != "dumb";
  const std::string text =
      request.json ? report_json(findings, rows) : report_text(findings, rows, terminal);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return exit_status_of(rows);
}

}  // namespace lockstep::doctor
