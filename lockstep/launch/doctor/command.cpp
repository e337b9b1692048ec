#include "lockstep/launch/doctor/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "lockstep/base/env.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/doctor/checks.h"
#include "lockstep/launch/doctor/examine.h"
#include "lockstep/launch/doctor/probe.h"
#include "lockstep/launch/doctor/report.h"
#include "lockstep/launch/option_words.h"
#include "lockstep/launch/start/host_slots.h"

namespace lockstep::doctor {
namespace {

constexpr std::array kDoctorOptions = {
    OptionName{"--hosts", "", true},     OptionName{"--rank_table", "", true},
    OptionName{"--ports", "", true},     OptionName{"--rsh", "", true},
    OptionName{"--lockstep", "", true},  OptionName{"--log_dir", "", true},
    OptionName{"--hccn_conf", "", true}, OptionName{"--seconds", "", true},
    OptionName{"--timeout", "", true},   OptionName{"--json", "", false},
    OptionName{"--probe", "", false},    OptionName{"--help", "-h", false},
};

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
  // As `lockstep run -H` takes them; the numbers of slots do not matter here.
  for (const auto& [host, slots] : host_list_items(list, "lockstep doctor: --hosts")) {
    if (std::find(hosts.begin(), hosts.end(), host) != hosts.end())
      refuse_doctor("--hosts: '" + host + "' is there twice");
    hosts.push_back(host);
  }
  return hosts;
}

double parse_seconds(const std::string& text, double most, const char* option) {
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(seconds >= 0) || seconds > most)
    refuse_doctor(fmt::format("{} '{}': seconds from 0 to {}", option, text, most));
  return seconds;
}

DoctorRequest parse_doctor(const std::vector<std::string>& words) {
  DoctorRequest request;
  ExamineOptions& examine = request.examine;
  examine.rsh = "ssh -o BatchMode=yes -o ConnectTimeout=10";
  examine.folder = std::filesystem::current_path().string();
  examine.lockstep = own_program();
  for (const auto& [name, value] : read_option_words(words, kDoctorOptions, "lockstep doctor")) {
    if (name.empty()) refuse_doctor("'" + value + "' is neither an option nor a check");
    if (name == "--hosts") examine.hosts = parse_hosts(value);
    if (name == "--rank_table") request.rank_table = value;
    if (name == "--ports") request.ports = value;
    if (name == "--rsh") examine.rsh = value;
    if (name == "--lockstep") examine.lockstep = value;
    if (name == "--log_dir") examine.log_folder = std::filesystem::absolute(value).string();
    if (name == "--hccn_conf") examine.hccn_conf = value;
    if (name == "--seconds") examine.seconds = parse_seconds(value, 60, "--seconds");
    if (name == "--timeout")
      examine.timeout = std::chrono::milliseconds(
          static_cast<int64_t>(1000 * parse_seconds(value, 3600, "--timeout")));
    if (name == "--json") request.json = true;
    if (name == "--probe") request.probe = true;
    if (name == "--help") request.help = true;
  }
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
      {{"",
        {{"--hosts H1,H2,...",
          "the hosts of the job, also as Slurm's n[01-03,7], each reached by --rsh (default: "
          "this one alone)"},
         {"--rank_table FILE", "hosts and device addresses of an Ascend job"},
         {"--ports LIST",
          "ports to try, e.g. 29500,60000-60015; 0 is one that the kernel chooses (default "
          "29500,0; of an Ascend job also HCCL's 16, from HCCL_IF_BASE_PORT or 60000)"},
         {"--rsh COMMAND",
          "what runs a command on another host; {host} in it is its name (default: ssh that "
          "asks no questions)"},
         {"--lockstep PATH", "this program on the other hosts (default: the same path as here)"},
         {"--log_dir DIR", "a folder that needs room, besides the current one"},
         {"--hccn_conf FILE",
          "addresses of Ascend devices (default: hccn_tool, else /etc/hccn.conf)"},
         {"--seconds S", "how long each pair's bandwidth is measured (default 0.2); 0: not at all"},
         {"--timeout S", "for each answer of a host (default 60)"},
         {"--json", "for programs"},
         {"-h, --help", "print this"}}}},
      ""};
}

int doctor_command(const std::vector<std::string>& words) {
  DoctorRequest request = parse_doctor(words);
  if (request.help) {
    std::fputs(help_text(doctor_help()).c_str(), stdout);
    return 0;
  }
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
