#pragma once
// Which rank a process is, decided from its environment alone.

#include <string>

#include "lockstep/base/socket.h"
#include "lockstep/launch/environment.h"

namespace lockstep {

/// What the environment says about this process. Only World::join() turns it into connections.
struct Identity {
  std::string launcher = "none";  ///< "lockstep", "torch" or "none".
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int node_rank = 0;
  int num_nodes = 1;
  int restart_count = 0;
  std::string job_id = "none";
  std::string secret;

  /// "lockstep": the agent's store. "torch": MASTER_ADDR and MASTER_PORT, empty when size is 1.
  Endpoint master;
  /// torchrun's own store listens at `master` (TORCHELASTIC_USE_AGENT_STORE=True).
  bool master_taken = false;
  /// Address other ranks are told to use (LOCKSTEP_ADDRESS); empty: find out.
  std::string address;
};

/// Decides in this order; an empty variable counts as unset.
///   1. Our agent: LOCKSTEP_STORE, _RANK, _WORLD_SIZE, _LOCAL_RANK, _LOCAL_WORLD_SIZE, _NODE_RANK,
///      _NUM_NODES, _RESTART_COUNT, _RUN_ID (all of them).
///   2. torch: RANK and WORLD_SIZE; with more than one rank also MASTER_ADDR and MASTER_PORT.
///      Optional: LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE,
///      TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_RUN_ID, TORCHELASTIC_USE_AGENT_STORE. Without the
///      local ones, a loopback MASTER_ADDR means that all ranks are on this host; any other means
///      one rank a host.
///   3. Else one process of one.
/// When both 1 and 2 are there they must agree; LOCKSTEP_LAUNCHER (lockstep, torch, none) picks one
/// without comparing. Errors: kInvalidArgument naming the variables at fault.
Identity decide_identity(const Environment& environment);

/// Is this process one rank of a job that a launcher has started? Errors: those of
/// decide_identity().
bool is_launched();

/// Intra-op threads of a rank: OMP_NUM_THREADS (its first number) where it is set, else
/// cores / local_size, at least 1.
int threads_per_rank(const Environment& environment, int cores, int local_size);

/// Cores this process may run on.
int usable_cores();

/// "localhost", 127.x.y.z or ::1.
bool is_loopback(const std::string& host);

}  // namespace lockstep
