#pragma once
// The store of a job whose ranks have no agent: rank 0 serves it, the others look for it.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/socket.h"
#include "lockstep/store.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep {

/// What the ends of a connection to such a store prove to each other.
struct StoreProof {
  std::string secret;
  Wire wire = Wire::kPlain;
  bool own_user_only = false;  ///< See TcpStoreServerOptions.
};
std::shared_ptr<Store> connect_store(const Endpoint& place, const StoreProof& proof,
                                     Deadline deadline);

/// Rank 0's connection to its own server. The server lives as long as the store, whose end waits up
/// to 5 s for ranks that have not left yet (not while an exception unwinds).
std::shared_ptr<Store> connect_own_server(std::unique_ptr<TcpStoreServer> server,
                                          const std::string& host, const StoreProof& proof,
                                          Deadline deadline);

/// A store and where it was found.
struct FoundStore {
  std::shared_ptr<Store> store;
  Endpoint at;
};

/// Tries each place once, for at most `patience`; passes by those where nobody listens, another job
/// is served (or one by another wire), or whose name is unknown. Nothing when it is at none.
FoundStore try_stores(const std::vector<Endpoint>& places, const StoreProof& proof,
                      Deadline deadline, std::chrono::milliseconds patience);

}  // namespace lockstep
