#pragma once
// The store of a job without an agent of ours: rank 0 serves it, the others look for it.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/store.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {

/// Proof between both ends of a connection to such a store.
struct StoreProof {
  std::string secret;
  Wire wire = Wire::kPlain;
  bool own_user_only = false;  ///< See TcpStoreServerOptions.
};
std::shared_ptr<Store> connect_store(const Endpoint& place, const StoreProof& proof,
                                     Deadline deadline);

/// Rank 0's connection to its own server. The server lives as long as the store. Its end waits up
/// to 5 s for ranks that have not left (not while an exception unwinds).
std::shared_ptr<Store> connect_own_server(std::unique_ptr<TcpStoreServer> server,
                                          const std::string& host, const StoreProof& proof,
                                          Deadline deadline);

/// A store and where it was found.
struct FoundStore {
  std::shared_ptr<Store> store;
  Endpoint at;
};

/// Tries each place once, for at most `patience`. Skips places where nobody listens, that serve
/// another job or another wire, or whose name is unknown. Nothing if none has it.
FoundStore try_stores(const std::vector<Endpoint>& places, const StoreProof& proof,
                      Deadline deadline, std::chrono::milliseconds patience);

/// Ports to try, in this order, by the server and by every client: MASTER_PORT. If torchrun's own
/// store listens there, or the launcher gives no port: eight derived from (MASTER_PORT, job id,
/// restart count). They are in LOCKSTEP_PORT_RANGE, else in [20000, 30000), which is below kernels'
/// ephemeral ranges and outside HCCL's.
std::vector<int> store_ports(const Identity& identity);

/// Eight ports for `use`, derived from (MASTER_PORT, job id, restart count), as above.
std::vector<int> derived_ports(const Identity& identity, const std::string& use);

/// The secret that the store's handshake proves. It depends on run id, size, port and restart
/// count. A client that reaches another job's store on a shared port is refused and tries the next
/// one. It is secret only if identity.secret is; if that is empty, the store admits only this
/// user's processes on this host.
std::string store_secret(const Identity& identity);

/// Serves (rank 0) or joins the store. The server lives as long as rank 0's copy. Its end waits up
/// to 5 s for ranks that have not left (not while an exception unwinds). Errors: kUnavailable (no
/// port is free), kTimeout naming address and ports, kMismatch (another build or job at
/// MASTER_PORT).
std::shared_ptr<Store> meet_torch_store(const Identity& identity, Deadline deadline);

}  // namespace lockstep::inline internal
