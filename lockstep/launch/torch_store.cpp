#include "lockstep/launch/torch_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/auth.h"
#include "lockstep/base/error.h"
#include "lockstep/launch/served_store.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep {
namespace {

constexpr int kFirstPort = 20000;
constexpr int kNumPorts = 10000;
constexpr size_t kNumTries = 8;

std::string job_text(const Identity& identity) {
  return fmt::format("{}/{}/{}", identity.master.port, identity.job_id, identity.restart_count);
}

std::unique_ptr<TcpStoreServer> serve(const Identity& identity) {
  const bool v6 = identity.master.host.find(':') != std::string::npos;
  const bool local = is_loopback(identity.master.host);
  TcpStoreServerOptions options;
  options.host = local ? (v6 ? "::1" : "127.0.0.1") : (v6 ? "::" : "0.0.0.0");
  options.secret = store_secret(identity);
  options.wire = identity.wire;
  const auto ports = store_ports(identity);
  for (const int port : ports) {
    options.port = port;
    try {
      return std::make_unique<TcpStoreServer>(options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable || port == ports.back()) throw;
    }
  }
  throw Error(ErrorCode::kInternal, "no port to serve the store on");
}

std::shared_ptr<Store> serve_and_connect(const Identity& identity, Deadline deadline) {
  const bool v6 = identity.master.host.find(':') != std::string::npos;
  return connect_own_server(serve(identity), v6 ? "::1" : "127.0.0.1", store_secret(identity),
                            identity.wire, deadline);
}

/// Goes round the ports, with growing patience for each, until one has our store.
std::shared_ptr<Store> search_store(const Identity& identity, Deadline deadline) {
  const auto ports = store_ports(identity);
  std::vector<Endpoint> places;
  for (const int port : ports) places.push_back({identity.master.host, port});
  for (auto patience = std::chrono::milliseconds(100); !deadline.passed();
       patience = std::min(patience * 2, std::chrono::milliseconds(3000))) {
    auto found = try_stores(places, store_secret(identity), identity.wire, deadline, patience);
    if (found.store) return found.store;
  }
  throw Error(ErrorCode::kTimeout,
              fmt::format("rank {}: no store of this job at {} on ports {}; is rank 0 running, "
                          "there, as the same build, and LOCKSTEP_SECRET and LOCKSTEP_TLS alike?",
                          identity.rank, identity.master.host, fmt::join(ports, ", ")));
}

bool has_own_port(const Identity& identity) {
  return identity.master.port != 0 && !identity.master_taken;
}

}  // namespace

std::vector<int> store_ports(const Identity& identity) {
  if (has_own_port(identity)) return {identity.master.port};
  const Digest digest = hmac_sha256("lockstep store ports", job_text(identity));
  std::vector<int> ports;
  for (size_t i = 0; ports.size() < kNumTries; i = (i + 2) % digest.size()) {
    const int number = digest[i] * 256 + digest[i + 1];
    int port = kFirstPort + number % kNumPorts;
    while (std::find(ports.begin(), ports.end(), port) != ports.end()) ++port;
    ports.push_back(port);
  }
  return ports;
}

std::string store_secret(const Identity& identity) {
  const auto text = fmt::format("torch/{}/{}", job_text(identity), identity.size);
  std::string hex;
  for (const uint8_t byte : hmac_sha256(identity.secret, text)) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::shared_ptr<Store> meet_torch_store(const Identity& identity, Deadline deadline) {
  if (identity.rank == 0) return serve_and_connect(identity, deadline);
  if (!has_own_port(identity)) return search_store(identity, deadline);
  return connect_tcp_store(identity.master, store_secret(identity), deadline, identity.wire);
}

}  // namespace lockstep
