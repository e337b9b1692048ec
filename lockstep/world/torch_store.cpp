#include "lockstep/world/torch_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "lockstep/base/auth.h"
#include "lockstep/base/holder.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/base/port_range.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/world/addresses.h"
#include "lockstep/world/reported_wait.h"

namespace lockstep::inline internal {
namespace {

/// How long rank 0 waits for ranks that have not left its store.
constexpr std::chrono::seconds kStay{5};

/// Rank 0's store: its server and its own connection to it.
struct ServedStore {
  ServedStore() = default;
  ~ServedStore() {
    client.reset();
    // Normally rank 0 leaves last: another rank may not yet have read its last answer. If it leaves
    // because of an error, the others must see that at once.
    if (server && std::uncaught_exceptions() == 0)
      server->wait_until_unused(Deadline::after(kStay));
  }
  ServedStore(const ServedStore&) = delete;
  ServedStore& operator=(const ServedStore&) = delete;

  std::unique_ptr<TcpStoreServer> server;
  std::shared_ptr<Store> client;
};

constexpr PortRange kDerived{20000, 29999};
constexpr int kNumTries = 8;
/// After this time a rank logs its wait, once.
constexpr auto kSilentFor = 5s;
/// Pause between two rounds of the ports: ports that refuse do so at once.
constexpr std::chrono::milliseconds kRoundPause{50};

std::string job_text(const Identity& identity) {
  return fmt::format("{}/{}/{}", identity.master.port, identity.job_id, identity.restart_count);
}

StoreProof proof_of(const Identity& identity) {
  return {store_secret(identity), identity.wire, identity.secret.empty()};
}

bool has_own_port(const Identity& identity) {
  return identity.master.port != 0 && !identity.master_taken;
}

/// Name of the variable with the port.
std::string port_variable(const Identity& identity) {
  if (identity.launcher == "mindspore") return "MS_SCHED_PORT";
  if (identity.launcher == "kubernetes") return "PET_MASTER_PORT";
  return identity.launcher == "arguments" ? "master_port" : "MASTER_PORT";
}

std::string named_port(const Identity& identity) {
  return (identity.launcher == "arguments" ? "World::join: " : "environment variable ") +
         port_variable(identity);
}

std::unique_ptr<TcpStoreServer> serve(const Identity& identity) {
  TcpStoreServerOptions options;
  options.host = listen_host(identity.master.host);
  options.secret = store_secret(identity);
  options.wire = identity.wire;
  options.own_user_only = identity.secret.empty();
  const auto ports = store_ports(identity);
  for (const int port : ports) {
    options.port = port;
    try {
      return std::make_unique<TcpStoreServer>(options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      if (has_own_port(identity)) {
        const auto variable = port_variable(identity);
        throw Error(error.code(),
                    fmt::format("{}: port {} is {}; rank 0 serves the store there: another process "
                                "may have rank 0, too, or an earlier job still run. End that, or "
                                "set another {} for all ranks",
                                named_port(identity), port, taken_by_text(port), variable));
      }
      if (port == ports.back()) throw;
    }
  }
  throw Error(ErrorCode::kInternal, "no port to serve the store on");
}

std::shared_ptr<Store> serve_and_connect(const Identity& identity, Deadline deadline) {
  return connect_own_server(serve(identity), host_for_itself(identity.master.host),
                            proof_of(identity), deadline);
}

void report_waiting(const Identity& identity, const std::string& place) {
  // One rank a host logs it, if that is known; on rank 0's host the next one.
  if (identity.local_rank > 0 && identity.rank != 1) return;
  log_info(fmt::format("rank {} waits for rank 0 to serve the store at {}", identity.rank, place));
}

/// Waits for rank 0.
std::shared_ptr<Store> connect(const Identity& identity, Deadline deadline) {
  const auto proof = proof_of(identity);
  try {
    return wait_and_report(
        deadline, kSilentFor,
        [&](Deadline limit) { return connect_store(identity.master, proof, limit); },
        [&](const Error&) { report_waiting(identity, to_string(identity.master)); });
  } catch (const WrongSecret& error) {
    throw Error(error.code(), fmt::format("{}, or the number of ranks, which is {} here",
                                          error.what(), identity.size));
  }
}

/// The servers among `places`; `patience` for each.
std::vector<Endpoint> served_places(const std::vector<Endpoint>& places, Deadline deadline,
                                    std::chrono::milliseconds patience) {
  std::vector<Endpoint> served;
  for (const Endpoint& place : places) {
    if (somebody_listens(place, deadline.at_most(patience))) served.push_back(place);
  }
  return served;
}

/// Tries the ports in turn, with growing patience for silent ones, until one has our store.
std::shared_ptr<Store> search_store(const Identity& identity, Deadline deadline) {
  const auto ports = store_ports(identity);
  std::vector<Endpoint> places;
  for (const int port : ports) places.push_back({identity.master.host, port});
  const auto silent_until = Deadline::after(kSilentFor);
  bool reported = false;
  for (auto patience = std::chrono::milliseconds(100); !deadline.passed();
       patience = std::min(patience * 2, std::chrono::milliseconds(3000))) {
    const auto served = served_places(places, deadline, patience);
    auto found = try_stores(served, proof_of(identity), deadline, patience);
    if (found.store) return found.store;
    std::this_thread::sleep_for(std::min(kRoundPause, deadline.left()));
    if (reported || !silent_until.passed()) continue;
    reported = true;
    report_waiting(identity, identity.master.host);
  }
  throw Error(ErrorCode::kTimeout,
              fmt::format("rank {}: no store of this job at {} on ports {}; is rank 0 running, "
                          "there, as the same build, and LOCKSTEP_SECRET and LOCKSTEP_TLS alike?",
                          identity.rank, identity.master.host, fmt::join(ports, ", ")));
}

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

std::vector<int> derived_ports(const Identity& identity, const std::string& use) {
  const Digest digest = hmac_sha256("lockstep " + use + " ports", job_text(identity));
  const PortRange range = port_range().value_or(kDerived);
  const int count = range.last - range.first + 1;
  const auto tries = static_cast<size_t>(std::min(kNumTries, count));
  std::vector<int> ports;
  for (size_t i = 0; ports.size() < tries; i = (i + 2) % digest.size()) {
    int number = digest[i] * 256 + digest[i + 1];
    const auto port = [&] { return range.first + number % count; };
    while (std::find(ports.begin(), ports.end(), port()) != ports.end()) ++number;
    ports.push_back(port());
  }
  return ports;
}

std::vector<int> store_ports(const Identity& identity) {
  if (has_own_port(identity)) return {identity.master.port};
  return derived_ports(identity, "store");
}

std::string store_secret(const Identity& identity) {
  const auto text = fmt::format("torch/{}/{}", job_text(identity), identity.size);
  return hex_digits(hmac_sha256(identity.secret, text));
}

std::shared_ptr<Store> meet_torch_store(const Identity& identity, Deadline deadline) {
  if (identity.rank == 0) return serve_and_connect(identity, deadline);
  if (!has_own_port(identity)) return search_store(identity, deadline);
  return connect(identity, deadline);
}

}  // namespace lockstep::inline internal
