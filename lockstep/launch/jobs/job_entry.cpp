#include "lockstep/launch/jobs/job_entry.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

#include "lockstep/base/namespaces.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string ProcessKey::text() const {
  return fmt::format("{}.{}.{}", pid, started, namespace_id);
}

std::optional<ProcessKey> ProcessKey::parse(const std::string& text) {
  const auto parts = split(text, '.');
  if (parts.size() != 3) return std::nullopt;
  for (const auto& part : parts) {
    if (!is_number(part)) return std::nullopt;
  }
  ProcessKey key{0, parts[1], parts[2]};
  const auto [end, failure] =
      std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), key.pid);
  if (failure != std::errc() || key.pid <= 0) return std::nullopt;
  return key;
}

ProcessKey own_key() {
  const pid_t pid = ::getpid();
  return {pid, process_start(pid), std::to_string(namespace_id("pid"))};
}

bool is_stopped(pid_t pid) {
  const auto fields = stat_fields(pid);
  return !fields.empty() && fields[0] == "T";
}

Liveness liveness(const ProcessKey& key, const ProcessKey& own) {
  if (key.namespace_id != own.namespace_id) return Liveness::kElsewhere;
  return process_start(key.pid) == key.started ? Liveness::kAlive : Liveness::kDead;
}

std::string to_json(const JobEntry& entry) {
  const nlohmann::json json = {
      {"pid", entry.pid},
      {"run_id", entry.run_id},
      {"node_rank", entry.node_rank},
      {"num_nodes", entry.num_nodes},
      {"first_rank", entry.first_rank},
      {"local_size", entry.local_size},
      {"world_size", entry.world_size},
      {"restart_count", entry.restart_count},
      {"began", entry.began},
      {"host", entry.host},
      {"folder", entry.folder},
      {"log_folder", entry.log_folder},
      {"attempt_folder", entry.attempt_folder},
      {"steps", entry.steps},
      {"command", entry.command},
      {"ended", entry.ended},
      {"exit_code", entry.exit_code},
      {"why", entry.why},
      {"cause", entry.cause},
      {"locked", entry.locked},
  };
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<JobEntry> job_entry_from_json(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    JobEntry entry;
    json.at("pid").get_to(entry.pid);
    json.at("run_id").get_to(entry.run_id);
    json.at("node_rank").get_to(entry.node_rank);
    json.at("num_nodes").get_to(entry.num_nodes);
    json.at("first_rank").get_to(entry.first_rank);
    json.at("local_size").get_to(entry.local_size);
    json.at("world_size").get_to(entry.world_size);
    json.at("restart_count").get_to(entry.restart_count);
    json.at("began").get_to(entry.began);
    json.at("host").get_to(entry.host);
    json.at("folder").get_to(entry.folder);
    json.at("log_folder").get_to(entry.log_folder);
    json.at("attempt_folder").get_to(entry.attempt_folder);
    entry.steps = json.value("steps", "");
    json.at("command").get_to(entry.command);
    entry.ended = json.value("ended", 0.0);  // missing in entries of older versions
    entry.exit_code = json.value("exit_code", 0);
    entry.why = json.value("why", "");
    entry.cause = json.value("cause", "");
    entry.locked = json.value("locked", false);
    return entry;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lockstep
