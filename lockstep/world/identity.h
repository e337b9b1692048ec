#pragma once
// The rank of a process, decided from its environment alone.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/socket.h"

namespace lockstep::inline internal {

/// A number that the launcher does not provide; the ranks determine it when they meet.
inline constexpr int kUnknownNumber = -1;

/// How the ranks of a job find each other.
enum class BootstrapMethod {
  kAlone,     ///< One rank.
  kAgent,     ///< At the agent's store, `master`.
  kRankZero,  ///< Rank 0 serves a store at `master`; all know the address.
  kExchange,  ///< Rank 0 serves a store, and sends address (and secret) through `channels`.
};

/// A channel for a line from rank 0 to the others before they have met.
enum class Channel {
  kPmix,    ///< The PMIx server of mpirun, prterun, srun --mpi=pmix; needs libpmix.so.2.
  kPmi,     ///< The PMI of mpiexec.hydra and srun --mpi=pmi2, at PMI_FD or PMI_PORT.
  kFolder,  ///< A file in LOCKSTEP_RENDEZVOUS_DIR, which all hosts share.
  kMunge,   ///< A port of `master`'s host, and credentials of munged, which runs on all hosts.
};
std::string to_string(Channel channel);

/// This process according to its environment. Only World::join() turns it into connections.
struct Identity {
  std::string launcher = "none";  ///< Name of its probe, see launcher_probes().
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< This and the next three may be kUnknownNumber.
  int local_size = 1;
  int node_rank = 0;
  int num_nodes = 1;
  int restart_count = 0;
  std::string job_id = "none";
  std::string secret;
  Wire wire = Wire::kPlain;  ///< Of the store where the ranks meet.
  /// The secret only distinguishes jobs: LOCKSTEP_INSECURE=1 allows them to meet without a real
  /// one.
  bool insecure = false;

  /// Not a rank: a process that only waits until the ranks at `master` are done (MindSpore's
  /// scheduler).
  bool scheduler = false;

  BootstrapMethod bootstrap = BootstrapMethod::kAlone;
  std::vector<Channel> channels;  ///< To be tried in this order.
  /// kAgent: the agent's store. kRankZero: host of rank 0. Port 0: one of store_ports().
  Endpoint master;
  /// torchrun's own store listens at `master` (TORCHELASTIC_USE_AGENT_STORE=True).
  bool master_taken = false;
  /// Address for other ranks (LOCKSTEP_ADDRESS); empty: detect it.
  std::string address;
  std::optional<int> device;  ///< DEVICE_ID, if the launcher assigns one.
  /// How long the ranks have to meet, if the launcher has a limit.
  std::optional<std::chrono::seconds> patience;
};

/// "rank 1 of 4, local rank 1 of 2, host 0 of 2".
std::string describe(const Identity& identity);

}  // namespace lockstep::inline internal
