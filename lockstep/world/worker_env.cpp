#include "lockstep/world/worker_env.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "lockstep/base/descriptors.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/cpu_topology.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {
namespace {

using Pairs = std::initializer_list<std::pair<const char*, std::string>>;

void set(Environment* environment, const Pairs& pairs) {
  for (const auto& [name, value] : pairs) (*environment)[name] = value;
}

void set_torch(Environment* environment, const JobAssignment& assignment, int local_rank,
               const WorkerEnvOptions& options) {
  const RanksOfHost& own = assignment.ranks;
  const auto text = [](int number) { return std::to_string(number); };
  set(environment,
      {{"RANK", text(own.first_rank + local_rank)},
       {"WORLD_SIZE", text(assignment.world_size)},
       {"LOCAL_RANK", text(local_rank)},
       {"LOCAL_WORLD_SIZE", text(own.local_size)},
       {"GROUP_RANK", text(assignment.node_rank)},
       {"GROUP_WORLD_SIZE", text(assignment.num_nodes)},
       {"ROLE_NAME", options.role},
       {"ROLE_RANK", text(own.first_role_rank + local_rank)},
       {"ROLE_WORLD_SIZE", text(own.role_size)},
       {"MASTER_ADDR", assignment.master_addr},
       {"MASTER_PORT", text(assignment.master_port)},
       {"TORCHELASTIC_RESTART_COUNT", text(assignment.restart_count)},
       {"TORCHELASTIC_MAX_RESTARTS", text(assignment.max_restarts)},
       {"TORCHELASTIC_RUN_ID", assignment.run_id},
       {"TORCHELASTIC_USE_AGENT_STORE", assignment.agent_serves_torch ? "True" : "False"},
       {"TORCHELASTIC_ERROR_FILE", options.error_file}});
  if (!options.signals.empty()) {
    (*environment)["TORCHELASTIC_SIGNALS_TO_HANDLE"] = options.signals;
  }
}

void set_own(Environment* environment, const JobAssignment& assignment, int local_rank,
             const WorkerEnvOptions& options) {
  const RanksOfHost& own = assignment.ranks;
  const auto text = [](int number) { return std::to_string(number); };
  set(environment, {{"LOCKSTEP_STORE", to_string(assignment.store)},
                    {"LOCKSTEP_SECRET", assignment.secret},
                    {"LOCKSTEP_RANK", text(own.first_rank + local_rank)},
                    {"LOCKSTEP_WORLD_SIZE", text(assignment.world_size)},
                    {"LOCKSTEP_LOCAL_RANK", text(local_rank)},
                    {"LOCKSTEP_LOCAL_WORLD_SIZE", text(own.local_size)},
                    {"LOCKSTEP_NODE_RANK", text(assignment.node_rank)},
                    {"LOCKSTEP_NUM_NODES", text(assignment.num_nodes)},
                    {"LOCKSTEP_GENERATION", text(assignment.generation)},
                    {"LOCKSTEP_GENERATION_TOKEN", assignment.token},
                    {"LOCKSTEP_RESTART_COUNT", text(assignment.restart_count)},
                    {"LOCKSTEP_AGENT", options.agent},
                    {"LOCKSTEP_STEPS", options.steps},
                    {"LOCKSTEP_RUN_ID", assignment.run_id}});
  environment->erase("LOCKSTEP_TLS");  // all traffic of a one-host job stays there
  if (assignment.wire == Wire::kTls) (*environment)["LOCKSTEP_TLS"] = "1";
  // A value from an outer job would contradict these variables.
  environment->erase("LOCKSTEP_LAUNCHER");
  if (!options.flight_dir.empty()) (*environment)["LOCKSTEP_FLIGHT_DIR"] = options.flight_dir;
  if (!options.local_addr.empty()) (*environment)["LOCKSTEP_ADDRESS"] = options.local_addr;
  environment->erase("LOCKSTEP_TERMINAL");
  environment->erase("LOCKSTEP_TERMINAL_PIPE");
  if (options.terminal_columns > 0) {
    (*environment)["LOCKSTEP_TERMINAL"] = text(options.terminal_columns);
    (*environment)["LOCKSTEP_TERMINAL_PIPE"] = pipe_name(options.stderr_fd);
  }
  environment->erase(kCpusVariable);
  environment->erase(kCpuSharersVariable);
  if (!options.cpus.empty()) {
    (*environment)[kCpusVariable] = cpu_list(options.cpus);
    (*environment)[kCpuSharersVariable] = text(options.cpu_sharers);
  }
}

void set_virtual(Environment* environment, int local_rank) {
  std::string& devices = (*environment)["CUDA_VISIBLE_DEVICES"];
  const auto visible = split(devices, ',');
  const auto index = static_cast<size_t>(local_rank);
  if (!devices.empty() && index >= visible.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--virtual_local_rank: CUDA_VISIBLE_DEVICES={} has no device for local "
                            "rank {}",
                            devices, local_rank));
  }
  devices = devices.empty() ? std::to_string(local_rank) : visible[index];
  (*environment)["LOCAL_RANK"] = "0";
  // LOCKSTEP_LOCAL_RANK stays true: the two must not be compared.
  (*environment)["LOCKSTEP_LAUNCHER"] = "lockstep";
}

void set_defaults(Environment* environment, int local_size, const WorkerEnvOptions& options) {
  const auto set_default = [&](const char* name, const std::string& value) {
    auto& place = (*environment)[name];
    if (place.empty()) place = value;
  };
  int threads = std::max(1, options.cores / local_size);
  if (!options.cpus.empty()) threads = std::min(threads, static_cast<int>(options.cpus.size()));
  set_default("OMP_NUM_THREADS", std::to_string(threads));
  set_default("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  set_default("NCCL_ASYNC_ERROR_HANDLING", "1");
  set_default("PYTHONUNBUFFERED", "1");
}

}  // namespace

std::vector<RanksOfHost> assign_ranks(const std::vector<HostRequest>& requests) {
  std::vector<RanksOfHost> nodes;
  std::map<std::string, int> role_sizes;
  int next_rank = 0;
  for (const HostRequest& request : requests) {
    if (request.num_nodes != static_cast<int>(requests.size())) {
      throw Error(ErrorCode::kMismatch,
                  fmt::format("host {} ({}) was started with --nnodes {}, host 0 ({}) with {}",
                              nodes.size(), request.host, request.num_nodes, requests[0].host,
                              requests.size()));
    }
    nodes.push_back({next_rank, request.local_size, role_sizes[request.role], 0});
    next_rank += request.local_size;
    role_sizes[request.role] += request.local_size;
  }
  for (size_t node = 0; node < nodes.size(); ++node) {
    nodes[node].role_size = role_sizes[requests[node].role];
  }
  return nodes;
}

int world_size(const std::vector<RanksOfHost>& nodes) {
  return nodes.empty() ? 0 : nodes.back().first_rank + nodes.back().local_size;
}

Environment waiting_environment(const Environment& base, int local_size,
                                const WorkerEnvOptions& options) {
  Environment environment = base;
  set(&environment, {{"LOCAL_WORLD_SIZE", std::to_string(local_size)},
                     {"LOCKSTEP_LOCAL_WORLD_SIZE", std::to_string(local_size)},
                     {"LOCKSTEP_AGENT", options.agent}});
  set_defaults(&environment, local_size, options);
  return environment;
}

Environment worker_environment(const Environment& base, const JobAssignment& assignment,
                               int local_rank, const WorkerEnvOptions& options) {
  Environment environment = base;
  set_torch(&environment, assignment, local_rank, options);
  set_own(&environment, assignment, local_rank, options);
  if (options.virtual_local_rank) set_virtual(&environment, local_rank);
  set_defaults(&environment, assignment.ranks.local_size, options);
  return environment;
}

}  // namespace lockstep::inline internal
