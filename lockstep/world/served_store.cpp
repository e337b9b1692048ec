#include "lockstep/world/served_store.h"

#include <exception>

#include "lockstep/error.h"

namespace lockstep {
namespace {

/// How long rank 0 stays for ranks that have not left its store.
constexpr std::chrono::seconds kStay{5};

/// Rank 0's store: its server and its own connection to it.
struct ServedStore {
  ServedStore() = default;
  ~ServedStore() {
    client.reset();
    // In order, rank 0 leaves last: another rank may not yet have read its last answer. When it
    // leaves because of an error, the others must see that at once.
    if (server && std::uncaught_exceptions() == 0)
      server->wait_until_unused(Deadline::after(kStay));
  }
  ServedStore(const ServedStore&) = delete;
  ServedStore& operator=(const ServedStore&) = delete;

  std::unique_ptr<TcpStoreServer> server;
  std::shared_ptr<Store> client;
};

}  // namespace

std::shared_ptr<Store> connect_store(const Endpoint& place, const StoreProof& proof,
                                     Deadline deadline) {
  if (proof.own_user_only) return connect_user_store(place, proof.secret, deadline);
  return connect_tcp_store(place, proof.secret, deadline, proof.wire);
}

std::shared_ptr<Store> connect_own_server(std::unique_ptr<TcpStoreServer> server,
                                          const std::string& host, const StoreProof& proof,
                                          Deadline deadline) {
  auto served = std::make_shared<ServedStore>();
  served->server = std::move(server);
  served->client = connect_store({host, served->server->port()}, proof, deadline);
  return {served, served->client.get()};
}

FoundStore try_stores(const std::vector<Endpoint>& places, const StoreProof& proof,
                      Deadline deadline, std::chrono::milliseconds patience) {
  for (const Endpoint& place : places) {
    try {
      return {connect_store(place, proof, deadline.at_most(patience)), place};
    } catch (const Error& error) {
      const bool next =
          error.code() == ErrorCode::kTimeout || error.code() == ErrorCode::kMismatch ||
          error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kPeerLost ||
          error.code() == ErrorCode::kUnavailable;
      if (!next) throw;
    }
  }
  return {};
}

}  // namespace lockstep
