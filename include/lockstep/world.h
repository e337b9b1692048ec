#pragma once
// Who am I in this job: rank, size, place, and the store where the ranks meet.

#include <memory>
#include <optional>
#include <string>

#include "lockstep/deadline.h"
#include "lockstep/store.h"

namespace lockstep {

/// For World::join(): no launcher's variables are read then, but MASTER_ADDR and MASTER_PORT where
/// the place to meet is left out, and those of Lockstep itself (LOCKSTEP_SECRET and so on).
struct RankArguments {
  int rank = 0;
  int world_size = 1;
  /// Where they are left out, the ranks find them out when they meet.
  std::optional<int> local_rank{};
  std::optional<int> local_world_size{};
  std::optional<int> node_rank{};
  std::optional<int> num_nodes{};
  std::string master_addr{};  ///< Rank 0's host.
  int master_port = 0;        ///< There; 0: one that follows from job_id and world_size.
  std::string job_id = "none";
};

/// This process's place in the job. A value; copies share the store.
///
/// join() finds the launcher by its variables: `lockstep run`, torchrun and scripts that set RANK,
/// Open MPI, MPICH, Slurm, ...; else this is one process of one. `lockstep env`, started in the
/// same way, shows what it finds and what it would do. It never guesses: incomplete or
/// contradicting variables are kInvalidArgument naming them.
struct World {
  int rank = 0;        ///< In [0, size).
  int size = 1;        ///< Processes in the job.
  int local_rank = 0;  ///< Rank among the processes of this host, in [0, local_size).
  int local_size = 1;
  int node_rank = 0;  ///< Host, in [0, num_nodes).
  int num_nodes = 1;
  int restart_count = 0;  ///< How often this job's workers were started again.
  int generation = 1;     ///< Starts of this job's workers so far, also after hosts came or left.
  /// Tells generations of one number apart. Empty where the launcher
  /// gives none: only `lockstep run` does.
  std::string generation_token;
  int threads = 1;  ///< Intra-op threads of this rank: its share of the host's cores.
  /// Index of this rank's accelerator among those it may see: the local rank, 0 where it sees just
  /// one, what the launcher assigns (DEVICE_ID); -1 where *_VISIBLE_DEVICES hides all.
  int device = 0;
  std::string launcher = "none";  ///< Name of the source; "spawn" (as threads) or "none".
  std::string job_id = "none";
  std::string secret;   ///< Job secret, where there is another rank: given, or made by rank 0.
  std::string host_id;  ///< Equal for ranks that can share memory (kernel and network namespace).
  std::string address = "127.0.0.1";  ///< Where other ranks reach this one.
  std::shared_ptr<Store> store;       ///< Never null after join(); keys of this attempt only.

  /// Reads the environment and meets the other ranks' store. Cost: one connection, one round trip
  /// for a sign of life, and two where the launcher does not tell who is on which
  /// host. Call once per process.
  /// Errors: kInvalidArgument (environment), kTimeout (store), kMismatch (another job or build).
  ///
  /// In MindSpore's scheduler (MS_ROLE=MS_SCHED), which is no rank, it never returns: it stays
  /// until the ranks are done, then ends the process well, as MindSpore's own init() does.
  static World join(Deadline deadline = Deadline::after(std::chrono::seconds(300)));

  /// The same for a program that knows its rank, by flags of its own:
  /// World::join({.rank = 1, .world_size = 2, .master_addr = "10.0.0.1", .master_port = 29500}).
  /// No launcher is looked for. Errors: kInvalidArgument (arguments) besides.
  static World join(const RankArguments& arguments,
                    Deadline deadline = Deadline::after(std::chrono::seconds(300)));
};

/// Identity of this host as World::host_id has it. LOCKSTEP_HOST_ID overrides it (for tests).
std::string this_host_id();

}  // namespace lockstep
