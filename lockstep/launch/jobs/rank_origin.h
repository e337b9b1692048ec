#pragma once
// The launcher of a rank, and its name for the job. Pure.

#include <string>

#include "lockstep/launch/jobs/rank_process.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {

struct RankOrigin {
  /// The command that users type, "torchrun", "mpirun", "srun"; "environment variables" (RANK,
  /// WORLD_SIZE); "rank table"; "spawn()"; else the name of the parent, "bash"; "none" for a single
  /// rank.
  std::string launcher;
  std::string name;      ///< The launcher's name of the job: "slurm-12.0"; empty: none.
  std::string endpoint;  ///< Where plain ranks meet: "host1:29500", a folder; empty: unknown.
  int node_rank = kUnknownNumber;
  int num_nodes = kUnknownNumber;
  int restart_count = 0;
};

/// The launcher whose variables contain the rank's own number and size. Plain variables come last:
/// a script within a step of srun sets RANK and WORLD_SIZE, but only the step has a name.
RankOrigin origin_of(const RankProcess& process);

/// The launcher's process belongs to one job, and ends it at its own end. Others, such as a shell,
/// live on.
bool is_process_of_one_job(const std::string& launcher);

/// For use in a sentence: "torchrun", "a script that sets RANK and WORLD_SIZE".
std::string launcher_in_words(const std::string& launcher);

}  // namespace lockstep::inline internal
