#include "lockstep/world/bootstrap/meet.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "lockstep/base/addresses.h"
#include "lockstep/base/auth.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/bootstrap/exchange.h"
#include "lockstep/world/torch_store.h"

namespace lockstep::inline internal {
namespace {

// '=' separates names from values in PMI's lines; some managers use ',' and ';'.
constexpr const char* kBegin = "lockstep1";
constexpr const char* kTlsBegin = "lockstep1s";

constexpr const char* kReached = "bootstrap/rank 0 is reached at";

std::unique_ptr<TcpStoreServer> serve_anywhere(const Identity& id) {
  TcpStoreServerOptions options;
  options.secret = store_secret(id);
  options.wire = id.wire;
  options.port = id.master_taken ? 0 : id.master.port;
  options.host = kAllAddresses;
  return std::make_unique<TcpStoreServer>(options);
}

/// Rank 0's store and the exchange, which lives as long: its file is removed with it.
struct PublishedStore {
  std::shared_ptr<RankExchange> exchange;
  std::shared_ptr<Store> store;
};

std::shared_ptr<Store> serve_and_tell(const std::shared_ptr<RankExchange>& exchange,
                                      const std::vector<std::string>& addresses, Identity* id,
                                      Deadline deadline) {
  BootstrapRecord record;
  if (id->secret.empty()) id->secret = make_job_secret();
  record.secret = id->secret;  // mpirun passes LOCKSTEP_SECRET to this host's ranks only
  record.wire = id->wire;      // and LOCKSTEP_TLS too
  auto server = serve_anywhere(*id);
  for (const auto& address : addresses) record.endpoints.push_back({address, server->port()});
  auto published = std::make_shared<PublishedStore>();
  published->exchange = exchange;
  published->store =
      connect_own_server(std::move(server), "127.0.0.1", {store_secret(*id), id->wire}, deadline);
  exchange->publish(to_line(record), deadline);
  id->master = record.endpoints.front();
  return {published, published->store.get()};
}

/// If a job of another build has left a line, this job's rank 0 replaces it.
BootstrapRecord receive_record(RankExchange& exchange, Deadline deadline) {
  while (true) {
    try {
      return parse_bootstrap_record(exchange.receive(deadline));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCorrupt || !exchange.may_change() || deadline.passed()) throw;
    }
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(20ms, deadline.left()));
  }
}

/// Takes rank 0's wire, except that a rank with TLS must not get less.
void take_wire(const BootstrapRecord& record, Identity* id) {
  if (id->wire == Wire::kTls && record.wire != Wire::kTls) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("LOCKSTEP_TLS=1 is set for rank {}, but not for rank 0, which serves "
                            "the store: set it for all ranks",
                            id->rank));
  }
  id->wire = record.wire;
}

std::shared_ptr<Store> look_for(const std::shared_ptr<RankExchange>& exchange, Identity* id,
                                Deadline deadline) {
  const std::string given = id->secret;
  std::string places;
  auto record = receive_record(*exchange, deadline);
  for (auto patience = std::chrono::milliseconds(200);;
       patience = std::min(patience * 2, std::chrono::milliseconds(3000))) {
    id->secret = record.secret.empty() ? given : record.secret;
    take_wire(record, id);
    auto found = try_stores(record.endpoints, {store_secret(*id), id->wire}, deadline, patience);
    if (found.store) {
      id->master = found.at;
      return found.store;
    }
    places.clear();
    for (const Endpoint& each : record.endpoints)
      places += (places.empty() ? "" : ", ") + to_string(each);
    if (deadline.passed()) break;
    if (exchange->may_change()) record = receive_record(*exchange, deadline);
  }
  throw Error(
      ErrorCode::kTimeout,
      fmt::format("rank {} does not reach rank 0's store at any of {}: is a firewall in the "
                  "way? LOCKSTEP_IFNAME or LOCKSTEP_ADDRESS on rank 0's host chooses "
                  "another address",
                  id->rank, places));
}

}  // namespace

std::string to_line(const BootstrapRecord& record) {
  std::string line = record.wire == Wire::kTls ? kTlsBegin : kBegin;
  line += "|" + record.secret;
  for (const Endpoint& endpoint : record.endpoints) {
    const auto text = "|" + to_string(endpoint);
    if (line.size() + text.size() <= kMaxExchangeBytes) line += text;
  }
  return line;
}

BootstrapRecord parse_bootstrap_record(const std::string& line) {
  const auto corrupt = [] {
    return Error(ErrorCode::kCorrupt,
                 "rank 0's bootstrap record cannot be read; does it run the "
                 "same build?");
  };
  const auto parts = split(line, '|');
  if (line.size() > kMaxExchangeBytes || parts.size() < 3) throw corrupt();
  BootstrapRecord record;
  if (parts[0] == kTlsBegin)
    record.wire = Wire::kTls;
  else if (parts[0] != kBegin)
    throw corrupt();
  record.secret = parts[1];
  for (size_t i = 2; i < parts.size(); ++i) {
    try {
      record.endpoints.push_back(parse_endpoint(parts[i], 0));
    } catch (const Error&) {
      throw corrupt();
    }
    if (record.endpoints.back().port == 0) throw corrupt();
  }
  return record;
}

std::shared_ptr<Store> meet_by_exchange(const std::shared_ptr<RankExchange>& exchange,
                                        const std::vector<std::string>& addresses, Identity* id,
                                        Deadline deadline) {
  return id->rank == 0 ? serve_and_tell(exchange, addresses, id, deadline)
                       : look_for(exchange, id, deadline);
}

std::string agreed_address(Store& store, const Identity& id, const std::string& address,
                           Deadline deadline) {
  if (id.num_nodes == 1) return "127.0.0.1";
  const auto used_by = [](int rank) { return fmt::format("bootstrap/used by {}", rank); };
  const bool beside_rank_0 = id.rank == 0 || is_own_address(id.master.host);
  if (id.rank == 0) {
    std::string reached;
    for (int rank = 1; rank < id.size; ++rank) {
      const auto used = store.get(used_by(rank), deadline);
      if (reached.empty()) reached = used;
    }
    store.set(kReached, reached.empty() ? address : reached, deadline);
  } else {
    store.set(used_by(id.rank), beside_rank_0 ? "" : id.master.host, deadline);
  }
  return beside_rank_0 ? store.get(kReached, deadline) : address;
}

}  // namespace lockstep::inline internal
