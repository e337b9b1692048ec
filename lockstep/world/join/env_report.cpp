#include "lockstep/world/join/env_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/counted.h"
#include "lockstep/world/addresses.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/device.h"
#include "lockstep/world/torch_store.h"

namespace lockstep::inline internal {
namespace {

constexpr const char* kLater = "found when the ranks meet";

std::string place(int value, int size) {
  const auto text = [](int number) {
    return number == kUnknownNumber ? std::string("?") : std::to_string(number);
  };
  if (value == kUnknownNumber && size == kUnknownNumber) return kLater;
  const bool open = value == kUnknownNumber || size == kUnknownNumber;
  return fmt::format("{} of {}{}", text(value), text(size),
                     open ? fmt::format(", {}", kLater) : "");
}

std::string channels_text(const Identity& id) {
  std::string text;
  for (const Channel channel : id.channels)
    text += (text.empty() ? "" : ", else ") + to_string(channel);
  return text;
}

std::string bootstrap_text(const Identity& id) {
  switch (id.bootstrap) {
    case BootstrapMethod::kAlone:
      return "nowhere: this rank is alone";
    case BootstrapMethod::kAgent:
      return fmt::format("the agent's store at {}", to_string(id.master));
    case BootstrapMethod::kRankZero:
      break;
    case BootstrapMethod::kExchange:
      return fmt::format("rank 0 serves a store and sends its address through {}",
                         channels_text(id));
  }
  const auto ports = store_ports(id);
  const auto where = ports.size() == 1 ? to_string(Endpoint{id.master.host, ports[0]})
                                       : fmt::format("{}, the first free of ports {}",
                                                     id.master.host, fmt::join(ports, ", "));
  return id.rank == 0 ? fmt::format("{}: this rank serves the store", where)
                      : fmt::format("{}: rank 0 serves the store", where);
}

std::string secret_text(const Identity& id) {
  if (id.insecure) return "none (LOCKSTEP_INSECURE=1)";
  if (!id.secret.empty())
    return id.wire == Wire::kTls ? "given; the store is reached by TLS" : "given";
  return id.bootstrap == BootstrapMethod::kExchange
             ? "rank 0 makes one, which travels the same way"
             : "none needed: only this user's processes of this host are let in";
}

std::string address_text(const Identity& id, const EnvFacts& facts) {
  if (!id.address.empty()) return id.address;
  const auto wish = wished_address(facts.variables);
  return wish.variable.empty() ? "by the route to the other ranks"
                               : fmt::format("{}={}", wish.variable, wish.value);
}

std::string device_text(const Identity& id, const EnvFacts& facts) {
  const auto visible = visible_devices(facts.variables);
  const std::string seen = visible.variable.empty()
                               ? std::string("no variable hides any")
                               : fmt::format("{}={}", visible.variable, visible.value);
  if (id.local_rank == kUnknownNumber && !id.device) return fmt::format("{} ({})", kLater, seen);
  const auto choice = choose_device(visible, id.local_rank, id.device);
  if (choice.index < 0) return fmt::format("none ({})", seen);
  return fmt::format("{} ({})", choice.index, id.device ? std::string("DEVICE_ID") : seen);
}

std::string threads_text(const Identity& id, const EnvFacts& facts) {
  const auto cores = counted(facts.cores, "core");
  if (id.local_size == kUnknownNumber) return fmt::format("{} ({})", kLater, cores);
  return fmt::format("{} ({}, {} on this host)",
                     threads_per_rank(facts.variables, facts.cores, id.local_size), cores,
                     counted(id.local_size, "rank"));
}

std::string state_text(const ProbeResult& result, const Decision& decision) {
  if (!result.problem.empty()) return "incomplete";
  if (!result.identity && !result.passed_over.empty()) return result.passed_over;
  if (!result.identity) return "not this process's";
  if (result.probe->name == decision.identity.launcher) return "chosen";
  return result.passed_over.empty() ? "complete" : result.passed_over;
}

std::string variable_text(const std::string& name, const EnvFacts& facts) {
  return fmt::format("{}={}", name, value_in(facts.variables, name));
}

std::string result_text(const ProbeResult& result, const Decision& decision,
                        const EnvFacts& facts) {
  auto text = fmt::format("  {:<11} {} ({})\n", result.probe->name, state_text(result, decision),
                          result.probe->about);
  if (!result.problem.empty()) text += fmt::format("    {}\n", result.problem);
  if (result.identity) text += fmt::format("    {}\n", describe(*result.identity));
  for (const auto& name : result.variables)
    text += fmt::format("    {}\n", variable_text(name, facts));
  return text;
}

std::string tuple_text(const Decision& decision, const EnvFacts& facts) {
  const Identity& id = decision.identity;
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value);
  };
  line("launcher", fmt::format("{} ({})", id.launcher, decision.why));
  line("rank", place(id.rank, id.size));
  line("local rank", place(id.local_rank, id.local_size));
  line("host", place(id.node_rank, id.num_nodes));
  line("job", fmt::format("{}, restart {}", id.job_id, id.restart_count));
  line("meets at", bootstrap_text(id));
  line("secret", secret_text(id));
  line("address", address_text(id, facts));
  line("device", device_text(id, facts));
  line("threads", threads_text(id, facts));
  return text;
}

nlohmann::json known(int value) {
  return value == kUnknownNumber ? nlohmann::json() : nlohmann::json(value);
}

nlohmann::json tuple_json(const Identity& id) {
  nlohmann::json channels = nlohmann::json::array();
  for (const Channel channel : id.channels) channels.push_back(to_string(channel));
  std::vector<int> ports;
  if (id.bootstrap == BootstrapMethod::kRankZero) ports = store_ports(id);
  if (id.bootstrap == BootstrapMethod::kAgent) ports = {id.master.port};
  return {{"launcher", id.launcher},
          {"rank", id.rank},
          {"size", id.size},
          {"local_rank", known(id.local_rank)},
          {"local_size", known(id.local_size)},
          {"node_rank", known(id.node_rank)},
          {"num_nodes", known(id.num_nodes)},
          {"restart_count", id.restart_count},
          {"job_id", id.job_id},
          {"master_host", id.master.host},
          {"ports", ports},
          {"channels", channels},
          {"has_secret", !id.secret.empty() && !id.insecure},
          {"insecure", id.insecure},
          {"tls", id.wire == Wire::kTls}};
}

nlohmann::json result_json(const ProbeResult& result, const Decision& decision,
                           const EnvFacts& facts) {
  nlohmann::json variables = nlohmann::json::object();
  for (const auto& name : result.variables) variables[name] = facts.variables.at(name);
  nlohmann::json json = {{"source", result.probe->name},
                         {"state", state_text(result, decision)},
                         {"variables", variables}};
  if (!result.problem.empty()) json["problem"] = result.problem;
  if (result.identity) json["tuple"] = describe(*result.identity);
  return json;
}

}  // namespace

std::string env_report(const Decision& decision, const EnvFacts& facts) {
  std::string text;
  if (decision.problem.empty()) text = tuple_text(decision, facts) + "\n";
  text += decision.results.empty() ? "sources      none: no launcher's variables are set\n"
                                   : "sources, by precedence\n";
  for (const ProbeResult& result : decision.results) text += result_text(result, decision, facts);
  for (const auto& warning : decision.warnings) text += fmt::format("\nwarning: {}\n", warning);
  if (!decision.problem.empty()) text += fmt::format("\nerror: {}\n", decision.problem);
  return text;
}

std::string env_report_json(const Decision& decision, const EnvFacts& facts) {
  const Identity& id = decision.identity;
  nlohmann::json json;
  json["problem"] = decision.problem.empty() ? nlohmann::json() : nlohmann::json(decision.problem);
  json["warnings"] = decision.warnings;
  json["sources"] = nlohmann::json::array();
  for (const ProbeResult& result : decision.results)
    json["sources"].push_back(result_json(result, decision, facts));
  if (!decision.problem.empty()) return json.dump(2) + "\n";
  json["identity"] = tuple_json(id);
  const bool place_known = id.local_rank != kUnknownNumber || id.device;
  json["identity"]["device"] =
      place_known
          ? nlohmann::json(
                choose_device(visible_devices(facts.variables), id.local_rank, id.device).index)
          : nlohmann::json();
  json["identity"]["threads"] =
      id.local_size == kUnknownNumber
          ? nlohmann::json()
          : nlohmann::json(threads_per_rank(facts.variables, facts.cores, id.local_size));
  return json.dump(2) + "\n";
}

}  // namespace lockstep::inline internal
