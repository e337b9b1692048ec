#include "lockstep/launch/jobs/job_entry.h"

#include <fmt/format.h>
#include <unistd.h>

#include <limits>

#include "lockstep/base/namespaces.h"
#include "lockstep/base/number.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/job/json_members.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kMaxEntry = 1 << 20;

constexpr auto kEntryMembers = [](auto& m, auto& entry) {
  constexpr int kMin = std::numeric_limits<int>::min();
  constexpr int kMax = std::numeric_limits<int>::max();
  m.number("pid", entry.pid, kMin, kMax);
  m.text("run_id", entry.run_id, kMaxEntry);
  m.number("node_rank", entry.node_rank, kMin, kMax);
  m.number("num_nodes", entry.num_nodes, kMin, kMax);
  m.number("first_rank", entry.first_rank, kMin, kMax);
  m.number("local_size", entry.local_size, kMin, kMax);
  m.number("world_size", entry.world_size, kMin, kMax);
  m.number("restart_count", entry.restart_count, kMin, kMax);
  m.real("began", entry.began);
  m.text("host", entry.host, kMaxEntry);
  m.text("folder", entry.folder, kMaxEntry);
  m.text("log_folder", entry.log_folder, kMaxEntry);
  m.text("attempt_folder", entry.attempt_folder, kMaxEntry);
  m.texts("command", entry.command, kMaxEntry);
  // Entries of older versions lack some of these.
  if (m.has("steps")) m.text("steps", entry.steps, kMaxEntry);
  if (m.has("ended")) m.real("ended", entry.ended);
  m.maybe("exit_code", entry.exit_code, kMin, kMax);
  if (m.has("why")) m.text("why", entry.why, kMaxEntry);
  if (m.has("cause")) m.text("cause", entry.cause, kMaxEntry);
  if (m.has("locked")) m.flag("locked", entry.locked);
};

}  // namespace

std::string ProcessKey::text() const {
  return fmt::format("{}.{}.{}", pid, started, namespace_id);
}

std::optional<ProcessKey> ProcessKey::parse(const std::string& text) {
  const auto parts = split(text, '.');
  if (parts.size() != 3) return std::nullopt;
  for (const auto& part : parts) {
    if (!all_digits(part)) return std::nullopt;
  }
  const auto pid = as_number<pid_t>(parts[0]);
  if (!pid || *pid <= 0) return std::nullopt;
  return ProcessKey{*pid, parts[1], parts[2]};
}

ProcessKey own_key() {
  const pid_t pid = ::getpid();
  return {pid, process_start(pid), std::to_string(pid_space_of_all_hosts())};
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
  return json_of(entry, kEntryMembers);
}

std::optional<JobEntry> job_entry_from_json(const std::string& text) {
  try {
    return read_message<JobEntry>(text, kMaxEntry, "entry of a job", kEntryMembers);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace lockstep::inline internal
