#pragma once
// What an agent keeps ready for the workers of a generation of which it becomes node 0: a port for
// their store, which it serves, and one for torch's own, which rank 0 does.

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lockstep/base/port_range.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep {

class WorkersStore {
 public:
  /// host: to listen on. Errors: kIo.
  WorkersStore(std::string host, std::string secret, Wire wire);

  /// Called in another thread when not all workers can come in: see TcpStoreServerOptions. Must be
  /// set before serve().
  void on_full(std::function<void(const std::string& why)> call) { on_full_ = std::move(call); }

  int store_port() const { return local_port(listener_.get()); }
  int torch_port() const { return next_torch_port_->port(); }

  /// A generation of which this agent is node 0 begins: serves at the ports of above, and has
  /// others ready for the next, so that no key or connection of an earlier one is ever met.
  void serve();
  /// No generation's workers run here as node 0's.
  void stop();

 private:
  void get_ready();

  const std::string host_;
  const std::string secret_;
  const Wire wire_;
  std::function<void(const std::string& why)> on_full_;
  UniqueFd listener_;
  std::optional<ReservedPort> next_torch_port_;
  std::optional<ReservedPort> torch_port_;
  std::optional<TcpStoreServer> server_;
};

}  // namespace lockstep
