#pragma once
// A World is a process's place in the job: rank, size, and the store where the ranks meet.
//
// Use:
//   const lockstep::World world = lockstep::World::join();
//   at::set_num_threads(world.threads);  // this rank's share of the host's cores
//   const auto mine = torch::arange(world.rank, 1000, world.size);
//   if (world.rank == 0) std::printf("%d ranks on %d hosts\n", world.size, world.num_nodes);
//   const auto group = lockstep::ProcessGroup::create(world);
//
// Threads: one calls join(), while no other one changes the environment. A World is a value, and
// any thread may use its store. Cost and errors: see join().

#include <memory>
#include <optional>
#include <string>

#include "lockstep/deadline.h"
#include "lockstep/store.h"

namespace lockstep {

/// For World::join() without launcher detection. It then reads no variables but Lockstep's own
/// (LOCKSTEP_SECRET and so on), and MASTER_ADDR and MASTER_PORT if the address is left out.
struct RankArguments {
  int rank = 0;
  int world_size = 1;
  /// If these are left out, the ranks determine them when they meet.
  std::optional<int> local_rank{};
  std::optional<int> local_world_size{};
  std::optional<int> node_rank{};
  std::optional<int> num_nodes{};
  std::string master_addr{};  ///< Rank 0's host.
  int master_port = 0;        ///< On that host; 0: one of eight, derived from job_id.
  std::string job_id = "none";
};

/// This process's place in the job. A value; copies share the store.
///
/// join() detects the launcher by its variables: `lockstep run`, torchrun and scripts that set
/// RANK, Open MPI, MPICH, Slurm and others. Without any, the job is this one process. `lockstep
/// env`, started in the same way, shows the result. join() never guesses: incomplete or
/// contradicting variables are kInvalidArgument naming them.
struct World {
  int rank = 0;        ///< In [0, size).
  int size = 1;        ///< Processes in the job.
  int local_rank = 0;  ///< Rank among the processes of this host, in [0, local_size).
  int local_size = 1;
  int node_rank = 0;  ///< Host, in [0, num_nodes).
  int num_nodes = 1;
  int restart_count = 0;  ///< Number of restarts of this job's workers.
  int generation = 1;     ///< Starts of this job's workers so far, also after hosts joined or left.
  /// Distinguishes generations of the same number. Only `lockstep run` sets it; empty otherwise.
  std::string generation_token;
  int threads = 1;  ///< Intra-op threads of this rank: its share of the host's cores.
  /// Index of this rank's accelerator among its visible ones: the local rank, 0 if it sees just
  /// one, or the launcher's choice (DEVICE_ID). -1 if *_VISIBLE_DEVICES hides all.
  int device = 0;
  std::string launcher = "none";  ///< Name of the launcher; "spawn" (as threads) or "none".
  std::string job_id = "none";
  std::string secret;   ///< Job secret, if there is another rank: given, or made by rank 0.
  std::string host_id;  ///< Equal for ranks that can share memory (kernel and network namespace).
  std::string address = "127.0.0.1";  ///< The address by which other ranks reach this one.
  std::shared_ptr<Store> store;       ///< Never null after join(); holds keys of this attempt only.

  /// Reads the environment and connects to the ranks' store. Cost: one connection, one round trip
  /// for a heartbeat, and two if the launcher does not give the ranks' hosts. Call once per
  /// process.
  /// Errors: kInvalidArgument (environment), kTimeout (store), kMismatch (another job, secret
  /// or build).
  ///
  /// In MindSpore's scheduler (MS_ROLE=MS_SCHED), which is no rank, it never returns. It waits
  /// until the ranks are done, then ends the process with success, as MindSpore's own init() does.
  /// If no rank comes before the deadline, that is kTimeout there, too.
  static World join(Deadline deadline);
  /// The same within 300 s, or within the limit of the launcher: MS_TOPO_TIMEOUT of MindSpore's.
  static World join();

  /// The same for a program that gets its rank by its own flags:
  /// World::join({.rank = 1, .world_size = 2, .master_addr = "10.0.0.1", .master_port = 29500}).
  /// It does not look for a launcher. Errors: also kInvalidArgument for the arguments.
  static World join(const RankArguments& arguments,
                    Deadline deadline = Deadline::after(std::chrono::seconds(300)));
};

}  // namespace lockstep
