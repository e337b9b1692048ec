#include "lockstep/launch/doctor/firewall.h"

#include "lockstep/base/literals.h"
#include "lockstep/base/text.h"

namespace lockstep::doctor {
namespace {

constexpr auto kFirewallTime = 10s;

bool has_part(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// Absent, or unknown if the program failed; nothing if its output can be read.
std::optional<Firewall> no_answer(const char* program, const ProgramOutput& output) {
  if (output.status == 127) return Firewall{program, FirewallState::kAbsent, "", ""};
  if (output.status == 0) return std::nullopt;
  return Firewall{program, FirewallState::kUnknown, split(output.err, '\n')[0], ""};
}

/// Administrators' programs may be outside the user's PATH.
ProgramOutput run_admin(std::vector<std::string> words) {
  auto output = run_program(words, Deadline::after(kFirewallTime));
  if (output.status != 127) return output;
  words[0] = "/usr/sbin/" + words[0];
  return run_program(words, Deadline::after(kFirewallTime));
}

}  // namespace

Firewall read_nft(const ProgramOutput& output) {
  if (const auto none = no_answer("nft", output)) return *none;
  std::string table;
  std::string chain;
  bool on_input = false;
  for (const std::string& raw : split(output.out, '\n')) {
    const std::string line(trimmed(raw));
    const auto name = [&](size_t skip) {
      return std::string(trimmed(line.substr(skip, line.find('{') - skip)));
    };
    if (line.starts_with("table ")) table = name(6);
    if (line.starts_with("chain ")) chain = name(6);
    if (line.starts_with("chain ") || line == "}") on_input = false;
    const bool hook = has_part(line, "hook input ");
    on_input |= hook;
    const bool blocks = line.ends_with("drop") || has_part(line, "reject");
    if (hook ? has_part(line, "policy drop")
             : on_input && blocks && !has_part(line, "ct state invalid")) {
      return {"nft", FirewallState::kOn, line, table + " " + chain};
    }
  }
  return {"nft", FirewallState::kOff, "", ""};
}

Firewall read_iptables(const ProgramOutput& output) {
  if (const auto none = no_answer("iptables", output)) return *none;
  for (const std::string& line : split(output.out, '\n')) {
    const bool blocks = has_part(line, "-j DROP") || has_part(line, "-j REJECT");
    if (line.starts_with("-P INPUT DROP") ||
        (line.starts_with("-A INPUT") && blocks && !has_part(line, "INVALID"))) {
      return {"iptables", FirewallState::kOn, line, ""};
    }
  }
  return {"iptables", FirewallState::kOff, "", ""};
}

Firewall read_ufw(const ProgramOutput& output) {
  if (const auto none = no_answer("ufw", output)) return *none;
  if (has_part(output.out, "Status: active"))
    return {"ufw", FirewallState::kOn, "it is active", ""};
  return {"ufw", FirewallState::kOff, "", ""};
}

Firewall read_firewalld(const ProgramOutput& output) {
  if (output.status == 127) return {"firewalld", FirewallState::kAbsent, "", ""};
  const bool running = output.status == 0 && output.out.starts_with("running");
  if (running) return {"firewalld", FirewallState::kOn, "it is running", ""};
  return {"firewalld", FirewallState::kOff, "", ""};
}

std::vector<Firewall> firewalls() {
  std::vector<Firewall> found = {read_nft(run_admin({"nft", "list", "ruleset"})),
                                 read_ufw(run_admin({"ufw", "status"})),
                                 read_firewalld(run_admin({"firewall-cmd", "--state"}))};
  // nft's output covers the rules of iptables too.
  if (found[0].state == FirewallState::kAbsent || found[0].state == FirewallState::kUnknown)
    found.push_back(read_iptables(run_admin({"iptables", "-S"})));
  return found;
}

}  // namespace lockstep::doctor
