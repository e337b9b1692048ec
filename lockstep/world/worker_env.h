#pragma once
// Assignment of ranks: hosts in the order of their node rank, ranks of a host in a row. And the
// environment of a worker: torchrun's, and our own.

#include <string>
#include <vector>

#include "lockstep/base/addresses.h"
#include "lockstep/base/auth.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// A host's contribution to a job.
struct HostRequest {
  std::string host;    ///< For messages.
  int num_nodes = 1;   ///< From its command line; must be equal everywhere.
  int local_size = 1;  ///< Ranks it runs.
  std::string role;    ///< ROLE_NAME of its ranks.
};

/// A host's part of the job.
struct RanksOfHost {
  int first_rank = 0;
  int local_size = 1;
  int first_role_rank = 0;  ///< Ranks of hosts of the same role before this one.
  int role_size = 1;        ///< Ranks of all hosts of this role.
};

/// requests[r] is node rank r's. Hosts may have different numbers of ranks. Errors: kMismatch if a
/// host's num_nodes is not requests.size().
std::vector<RanksOfHost> assign_ranks(const std::vector<HostRequest>& requests);

/// Number of ranks of all hosts.
int world_size(const std::vector<RanksOfHost>& nodes);

/// A host's view of its job when it starts workers. Its size does not depend on the number of
/// hosts.
struct JobAssignment {
  std::string run_id;
  int node_rank = 0;
  std::string host;   ///< This host's, for messages.
  RanksOfHost ranks;  ///< This host's.
  int num_nodes = 1;
  int world_size = 1;  ///< Ranks of all hosts.
  Endpoint store;      ///< The workers' own.
  std::string secret;
  Wire wire = Wire::kPlain;  ///< Of `store`.
  std::string master_addr;   ///< For torch's own store.
  int master_port = 0;
  bool agent_serves_torch = false;  ///< Host 0's agent serves that store; else rank 0 has to.
  int generation = 1;               ///< Of the workers: number of starts of all of them.
  std::string token;                ///< base/generation_token.h.
  int restart_count = 0;            ///< Generations ended by a failure.
  int early_failures = 0;           ///< These three as RestartRecord has them, for a new leader.
  int failures_in_a_row = 0;
  bool stepped = false;
  int max_restarts = 0;
};

struct WorkerEnvOptions {
  std::string role;
  std::string local_addr;           ///< Empty: the worker detects it.
  std::string error_file;           ///< TORCHELASTIC_ERROR_FILE; may be empty.
  std::string signals;              ///< TORCHELASTIC_SIGNALS_TO_HANDLE; empty: as in the base.
  std::string flight_dir;           ///< LOCKSTEP_FLIGHT_DIR; may be empty.
  std::string agent;                ///< LOCKSTEP_AGENT.
  std::string steps;                ///< LOCKSTEP_STEPS: see ProgressMemory::path().
  int terminal_columns = 0;         ///< LOCKSTEP_TERMINAL: where stderr is shown; 0: no terminal.
  int stderr_fd = -1;               ///< LOCKSTEP_TERMINAL_PIPE, with it: the worker's end.
  bool virtual_local_rank = false;  ///< LOCAL_RANK 0 and one device, as --virtual_local_rank.
  int cores = 1;                    ///< Of this host, to share among its ranks.
  std::vector<int> cpus;            ///< LOCKSTEP_CPUS: CPUs that it is bound to; empty: none.
  int cpu_sharers = 1;              ///< Ranks bound to the same CPUs, including itself.
};

/// The part of worker_environment() that is known before the job has an assignment:
/// LOCAL_WORLD_SIZE and LOCKSTEP_LOCAL_WORLD_SIZE, LOCKSTEP_AGENT, and defaults for variables
/// missing in `base`.
Environment waiting_environment(const Environment& base, int local_size,
                                const WorkerEnvOptions& options);

/// `base` (the agent's own environment) overlaid with RANK, WORLD_SIZE, LOCAL_*, GROUP_*, ROLE_*,
/// MASTER_*, TORCHELASTIC_* and LOCKSTEP_*. Set only if missing in `base`:
/// - OMP_NUM_THREADS: cores / local ranks, at least 1 and at most the CPUs that it is bound to;
/// - TORCH_NCCL_ASYNC_ERROR_HANDLING and its older name: 1;
/// - PYTHONUNBUFFERED: 1, so that lines appear when they are printed.
/// Source: the workers' environment of torch.distributed.elastic (local_elastic_agent.py). Errors:
/// kInvalidArgument (virtual_local_rank with fewer devices in CUDA_VISIBLE_DEVICES than ranks).
Environment worker_environment(const Environment& base, const JobAssignment& assignment,
                               int local_rank, const WorkerEnvOptions& options);

}  // namespace lockstep::inline internal
