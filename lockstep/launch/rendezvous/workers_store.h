#pragma once
// Ports that an agent keeps ready for its workers, in case it becomes host 0: one for their store,
// and one for torch's own.

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/rendezvous/torch_store_port.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep {

class WorkersStore {
 public:
  /// host: to listen on; serves_torch: see TorchStorePort. Errors: kIo, kUnavailable.
  WorkersStore(std::string host, std::string secret, Wire wire, bool serves_torch);

  /// Called in another thread if not all workers can connect: see TcpStoreServerOptions. Must be
  /// set before serve().
  void on_full(std::function<void(const std::string& why)> call) { on_full_ = std::move(call); }

  int store_port() const { return local_port(listener_.get()); }
  int torch_port() const { return next_torch_->port(); }

  /// This agent is host 0 of a new generation: serves at the ports above, and reserves others for
  /// the next. No key or connection of an earlier generation is ever met.
  void serve();
  /// No workers of a generation with this agent as host 0 run any more.
  void stop();

 private:
  void get_ready();

  const std::string host_;
  const std::string secret_;
  const Wire wire_;
  const bool serves_torch_;
  std::function<void(const std::string& why)> on_full_;
  UniqueFd listener_;
  std::optional<TorchStorePort> next_torch_;
  std::optional<TorchStorePort> torch_;
  std::optional<TcpStoreServer> server_;
};

}  // namespace lockstep
