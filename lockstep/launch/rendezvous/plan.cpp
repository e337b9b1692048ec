#include "lockstep/launch/rendezvous/plan.h"

#include <limits>

#include "lockstep/error.h"
#include "lockstep/launch/job/json_members.h"
#include "lockstep/launch/rendezvous/limits.h"

namespace lockstep {
namespace {

constexpr int kMaxRanks = std::numeric_limits<int>::max();
constexpr size_t kMaxAwaited = 4096;

nlohmann::json endpoint_json(const Endpoint& endpoint) {
  return {{"host", cut(endpoint.host, kMaxName)}, {"port", endpoint.port}};
}

Endpoint endpoint_of(const nlohmann::json& json) {
  if (!json.is_object()) throw Error(ErrorCode::kCorrupt, "message of an agent: not an endpoint");
  return {text_member(json, "host", kMaxName), small_member(json, "port", 0, kMaxPort)};
}

Endpoint endpoint_member(const nlohmann::json& json, const char* name) {
  return endpoint_of(json.value(name, nlohmann::json()));
}

std::vector<Endpoint> successors_of(const nlohmann::json& list) {
  if (!list.is_array() || list.size() > size_t{kMaxSuccessors}) {
    throw Error(ErrorCode::kCorrupt, "message of an agent: 'successors' is not a list of up to 8");
  }
  std::vector<Endpoint> endpoints;
  for (const auto& each : list) endpoints.push_back(endpoint_of(each));
  return endpoints;
}

NodeRanks ranks_of(const nlohmann::json& json, int world_size) {
  NodeRanks ranks;
  ranks.local_size = small_member(json, "local_size", 1, std::min(world_size, kMaxLocalRanks));
  ranks.first_rank = small_member(json, "first_rank", 0, world_size - ranks.local_size);
  ranks.role_size = small_member(json, "role_size", ranks.local_size, world_size);
  ranks.first_role_rank =
      small_member(json, "first_role_rank", 0, ranks.role_size - ranks.local_size);
  return ranks;
}

}  // namespace

std::string to_json(const NodePlan& plan) {
  nlohmann::json successors = nlohmann::json::array();
  for (const Endpoint& each : plan.successors) successors.push_back(endpoint_json(each));
  return to_text({{"generation", plan.generation},
                  {"token", cut(plan.token, kMaxName)},
                  {"restart_count", plan.restart_count},
                  {"early_failures", plan.early_failures},
                  {"failures_in_a_row", plan.failures_in_a_row},
                  {"stepped", plan.stepped ? 1 : 0},
                  {"max_restarts", plan.max_restarts},
                  {"run_id", cut(plan.run_id, kMaxName)},
                  {"node_rank", plan.node_rank},
                  {"num_nodes", plan.num_nodes},
                  {"world_size", plan.world_size},
                  {"first_rank", plan.ranks.first_rank},
                  {"local_size", plan.ranks.local_size},
                  {"first_role_rank", plan.ranks.first_role_rank},
                  {"role_size", plan.ranks.role_size},
                  {"store", endpoint_json(plan.store)},
                  {"torch", endpoint_json(plan.torch)},
                  {"successors", successors}});
}

NodePlan node_plan_from_json(std::string_view text) {
  const auto json = parse_object(text, kMaxPlanBytes, "a node's plan");
  NodePlan plan;
  plan.generation = int_member(json, "generation", 1, kMaxGeneration);
  plan.restart_count = small_member(json, "restart_count", 0, kMaxRestarts);
  plan.token = text_member(json, "token", kMaxName);
  plan.early_failures = small_member(json, "early_failures", 0, kMaxRestarts);
  plan.failures_in_a_row = small_member(json, "failures_in_a_row", 0, kMaxRestarts);
  plan.stepped = small_member(json, "stepped", 0, 1) == 1;
  plan.max_restarts = small_member(json, "max_restarts", 0, kMaxRestarts);
  plan.run_id = text_member(json, "run_id", kMaxName);
  plan.num_nodes = small_member(json, "num_nodes", 1, kMaxNodes);
  plan.node_rank = small_member(json, "node_rank", 0, plan.num_nodes - 1);
  plan.world_size = small_member(json, "world_size", plan.num_nodes, kMaxRanks);
  plan.ranks = ranks_of(json, plan.world_size);
  plan.store = endpoint_member(json, "store");
  plan.torch = endpoint_member(json, "torch");
  plan.successors = successors_of(json.value("successors", nlohmann::json()));
  return plan;
}

std::string to_json(const JobRecord& record) {
  nlohmann::json json = {
      {"state", static_cast<int>(record.state)}, {"generation", record.generation},
      {"restart_count", record.restart_count},   {"by", cut(record.by, kMaxName)},
      {"num_agents", record.num_agents},         {"at_once", record.at_once ? 1 : 0},
      {"why", cut(record.why, kMaxAwaited)},     {"awaited", cut(record.awaited, kMaxAwaited)}};
  if (record.failure) json["failure"] = to_json(*record.failure);
  return to_text(json);
}

JobRecord job_record_from_json(std::string_view text) {
  const auto json = parse_object(text, kMaxRecordBytes, "the job's record");
  JobRecord record;
  record.state = static_cast<JobRecord::State>(small_member(json, "state", 0, 3));
  record.generation = int_member(json, "generation", 0, kMaxGeneration);
  record.restart_count = small_member(json, "restart_count", 0, kMaxRestarts);
  record.num_agents = int_member(json, "num_agents", 0, kMaxGeneration);
  record.at_once = json.contains("at_once") && small_member(json, "at_once", 0, 1) == 1;
  record.by = text_member(json, "by", kMaxName);
  record.why = text_member(json, "why", kMaxAwaited);
  record.awaited = text_member(json, "awaited", kMaxAwaited);
  if (json.contains("failure")) {
    record.failure = failure_from_json(text_member(json, "failure", kMaxRecordBytes));
  }
  return record;
}

}  // namespace lockstep
