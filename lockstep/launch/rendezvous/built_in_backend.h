#pragma once

#include <optional>
#include <vector>

#include "lockstep/base/addresses.h"
#include "lockstep/launch/rendezvous/rendezvous_backend.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep::inline internal {

/// A store that an agent serves: at first the one at the endpoint; after its end a successor on its
/// own port (docs/design/rendezvous.md).
class BuiltInBackend final : public RendezvousBackend {
 public:
  /// Whether this agent serves at the endpoint.
  enum class Role { kServes, kMayServe, kConnects };

  /// Errors: kInvalidArgument (the endpoint is not loopback and there is no secret).
  BuiltInBackend(const RunOptions& options, const std::string& secret);
  ~BuiltInBackend() override;

  std::shared_ptr<KeyValueStore> open(Deadline deadline) override;
  std::shared_ptr<KeyValueStore> reopen(const Candidates& candidates, const std::atomic<bool>& stop,
                                        Deadline deadline) override;
  std::shared_ptr<KeyValueStore> rejoin(const std::atomic<bool>& stop, Deadline deadline) override;
  void remember_addresses() override;
  bool nobody_serves() override;
  bool may_lead() const override { return server_.has_value(); }
  std::string own_address() const override;
  std::string listen_host() const override;
  int own_port() const override { return own_port_; }
  std::optional<Endpoint> elsewhere() const override;
  Endpoint endpoint() const override { return at_; }
  std::string name() const override { return to_string(endpoint_); }
  std::string loss() const override;
  std::chrono::milliseconds call_limit() const override;
  void close(Deadline deadline) override;

 private:
  std::shared_ptr<Store> serve(UniqueFd listener, const Endpoint& as);
  std::shared_ptr<Store> try_to_serve();
  void stop_serving();
  std::vector<Endpoint> ways_to(const Endpoint& candidate) const;
  std::shared_ptr<Store> try_candidate(const Endpoint& candidate, Deadline deadline);
  Listening probe_server(Deadline deadline) const;
  std::shared_ptr<Store> try_at(const Endpoint& address, Deadline deadline);
  std::shared_ptr<Store> connect_or_serve(Deadline deadline);
  void check_job(Store& store, Deadline deadline) const;
  std::string who_waits() const;
  std::string search_text() const;

  const RunOptions options_;
  const std::string secret_;
  const Endpoint endpoint_;
  Role role_;
  Endpoint at_;
  AddressList addresses_{nullptr, &::freeaddrinfo};  ///< Of `at_`; null: see remember_addresses().
  std::string remembered_;                           ///< The endpoint that has these addresses.
  UniqueFd own_listener_;
  int own_port_ = 0;
  std::optional<TcpStoreServer> server_;
};

}  // namespace lockstep::inline internal
