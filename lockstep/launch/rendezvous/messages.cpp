#include "lockstep/launch/rendezvous/messages.h"

#include <algorithm>
#include <limits>

#include "lockstep/base/auth.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/job/json_members.h"

namespace lockstep::inline internal {
namespace {

/// Hexadecimal digits of a mark.
constexpr size_t kMaxMark = 2 * sizeof(Digest);

constexpr auto kJoinRequestMembers = [](auto& m, auto& request) {
  m.text("host", request.host, kMaxName);
  m.text("address", request.address, kMaxName);
  m.number("store_port", request.store_port, 0, kMaxPort);
  m.number("torch_port", request.torch_port, 0, kMaxPort);
  m.number("takeover_port", request.takeover_port, 0, kMaxPort);
  m.number("local_size", request.local_size, 1, kMaxLocalRanks);
  m.text("role", request.role, kMaxName);
  m.text("program", request.program, kMaxName);
  m.text("mark", request.mark, kMaxMark);
  if (m.has("command")) m.text("command", request.command, kMaxMark);
  if (m.has("folder")) m.text("folder", request.folder, kMaxMark);
  if (m.has("host_id")) m.text("host_id", request.host_id, kMaxName);
  m.maybe("named", request.named, 0, 1);
  m.number("max_nodes", request.max_nodes, 1, kMaxHosts);
  m.number("min_nodes", request.min_nodes, 1, request.max_nodes);
  m.number("generation", request.generation, 0, kMaxGeneration);
  m.number("last_rank", request.last_rank, -1, kMaxHosts - 1);
  m.number("num_nodes", request.num_nodes, 0, kMaxHosts);
  m.number("restart_count", request.restart_count, 0, kMaxRestarts);
  m.text("token", request.token, kMaxName);
  m.number("stepped", request.stepped, 0, 1);
  m.number("early_failures", request.early_failures, 0, kMaxRestarts);
  m.number("failures_in_a_row", request.failures_in_a_row, 0, kMaxRestarts);
  m.number("work", request.work, 0, 2);
  m.number("leaving", request.leaving, 0, 64);
  m.text("term", request.term, kMaxName);
  m.maybe("node_rank", request.node_rank, 0, kMaxHosts - 1);
};

constexpr int kMaxRanks = std::numeric_limits<int>::max();
constexpr size_t kMaxAwaited = 4096;

constexpr auto kEndpointMembers = [](auto& m, auto& endpoint) {
  m.text("host", endpoint.host, kMaxName);
  m.number("port", endpoint.port, 0, kMaxPort);
};

constexpr auto kAssignmentMembers = [](auto& m, auto& assignment) {
  m.number("generation", assignment.generation, 1, kMaxGeneration);
  m.text("token", assignment.token, kMaxName);
  m.number("restart_count", assignment.restart_count, 0, kMaxRestarts);
  m.number("early_failures", assignment.early_failures, 0, kMaxRestarts);
  m.number("failures_in_a_row", assignment.failures_in_a_row, 0, kMaxRestarts);
  m.number("stepped", assignment.stepped, 0, 1);
  m.number("max_restarts", assignment.max_restarts, 0, kMaxRestarts);
  m.text("run_id", assignment.run_id, kMaxName);
  m.number("num_nodes", assignment.num_nodes, 1, kMaxHosts);
  m.number("node_rank", assignment.node_rank, 0, assignment.num_nodes - 1);
  m.number("world_size", assignment.world_size, assignment.num_nodes, kMaxRanks);
  auto& ranks = assignment.ranks;
  m.number("local_size", ranks.local_size, 1, std::min(assignment.world_size, kMaxLocalRanks));
  m.number("first_rank", ranks.first_rank, 0, assignment.world_size - ranks.local_size);
  m.number("role_size", ranks.role_size, ranks.local_size, assignment.world_size);
  m.number("first_role_rank", ranks.first_role_rank, 0, ranks.role_size - ranks.local_size);
  m.object("store", assignment.store, kEndpointMembers);
  m.object("torch", assignment.torch, kEndpointMembers);
  m.objects("successors", assignment.successors, kMaxSuccessors, kEndpointMembers);
};

constexpr auto kRecordMembers = [](auto& m, auto& record) {
  m.number("state", record.state, 0, 3);
  m.number("generation", record.generation, 0, kMaxGeneration);
  m.number("restart_count", record.restart_count, 0, kMaxRestarts);
  m.number("num_agents", record.num_agents, 0, kMaxGeneration);
  m.maybe("at_once", record.at_once, 0, 1);
  if (m.has("role")) m.text("role", record.role, kMaxName);
  if (m.has("command")) m.text("command", record.command, kMaxMark);
  m.maybe("named", record.named, 0, 1);
  m.text("by", record.by, kMaxName);
  m.text("why", record.why, kMaxAwaited);
  m.text("awaited", record.awaited, kMaxAwaited);
};

}  // namespace

std::string secret_mark(std::string_view secret, Wire wire) {
  const auto* text =
      wire == Wire::kTls ? "an agent's join request, by TLS" : "an agent's join request";
  return text_mark(secret, text);
}

std::string text_mark(std::string_view secret, std::string_view text) {
  return hex_digits(hmac_sha256(secret, text));
}

std::string to_json(const JoinRequest& request) {
  return json_of(request, kJoinRequestMembers);
}

JoinRequest join_request_from_json(std::string_view text) {
  return read_message<JoinRequest>(text, kMaxJoinRequestBytes, "an agent's join request",
                                   kJoinRequestMembers);
}

std::string to_json(const HostAssignment& assignment) {
  return json_of(assignment, kAssignmentMembers);
}

HostAssignment host_assignment_from_json(std::string_view text) {
  return read_message<HostAssignment>(text, kMaxAssignmentBytes, "a host's assignment",
                                      kAssignmentMembers);
}

JobAssignment job_assignment(const HostAssignment& assignment) {
  JobAssignment job;
  job.run_id = assignment.run_id;
  job.node_rank = assignment.node_rank;
  job.ranks = assignment.ranks;
  job.num_nodes = assignment.num_nodes;
  job.world_size = assignment.world_size;
  job.store = assignment.store;
  job.master_addr = assignment.torch.host;
  job.master_port = assignment.torch.port;
  job.generation = static_cast<int>(assignment.generation);
  job.token = assignment.token;
  job.restart_count = assignment.restart_count;
  job.early_failures = assignment.early_failures;
  job.failures_in_a_row = assignment.failures_in_a_row;
  job.stepped = assignment.stepped;
  job.max_restarts = assignment.max_restarts;
  return job;
}

std::string to_json(const JobRecord& record) {
  auto json = MemberWriter::written(record, kRecordMembers);
  if (record.failure) json["failure"] = to_json(*record.failure);
  return to_text(json);
}

JobRecord job_record_from_json(std::string_view text) {
  const MemberReader reader(text, kMaxRecordBytes, "the job's record");
  JobRecord record;
  kRecordMembers(reader, record);
  if (reader.has("failure")) {
    std::string failure;
    reader.text("failure", failure, kMaxRecordBytes);
    record.failure = failure_from_json(failure);
  }
  return record;
}

}  // namespace lockstep::inline internal
