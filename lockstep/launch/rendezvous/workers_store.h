#pragma once
// Ports that an agent keeps ready for its workers, in case it becomes host 0: one for their store,
// and one for torch's own.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lockstep/base/port_range.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/store/torch/torch_server.h"

namespace lockstep::inline internal {

/// Whether host 0's agent serves torch's store. Pure.
bool agent_serves_torch(const RunOptions& options);

/// MASTER_PORT of one generation, on host 0: where torch's own store (TCPStore) is.
///
/// As under torchrun, host 0's agent serves it from the start of the workers, and they are told so
/// (TORCHELASTIC_USE_AGENT_STORE=True). A program that only connects, such as torchft's Manager,
/// finds it before any process group exists. With TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 the port is
/// only kept free, and rank 0 serves the store. torchrun does not heed that variable with its
/// static backend, and neither does Lockstep where torchrun would use it. That is with several
/// hosts, or with --master_port. Unlike torchrun's, each generation has a store of its own, as a
/// port.
class TorchStorePort {
 public:
  /// Takes `port` (0: a free one), and listens there on `host` if `served`. Errors: as
  /// ReservedPort, kUnavailable.
  TorchStorePort(const std::string& host, int port, bool served);

  int port() const { return reserved_.port(); }
  /// Becomes readable with the first client; -1: serve() must not be called (any more).
  int first_connection_fd() const { return listener_.get(); }
  /// Starts the server, which lives as long as this.
  void serve() { server_ = std::make_unique<TorchStoreServer>(std::move(listener_)); }

 private:
  ReservedPort reserved_;
  UniqueFd listener_;
  std::unique_ptr<TorchStoreServer> server_;
};

class WorkersStore {
 public:
  /// host: to listen on; serves_torch: see TorchStorePort. Errors: kIo, kInvalidArgument if no
  /// ports are left of LOCKSTEP_PORT_RANGE.
  WorkersStore(std::string host, std::string secret, Wire wire, bool serves_torch);

  /// Called in another thread if not all workers can connect: see TcpStoreServerOptions. Must be
  /// set before serve().
  void on_full(std::function<void(const std::string& why)> call) { on_full_ = std::move(call); }

  int store_port() const { return local_port(listener_.get()); }
  int torch_port() const { return next_torch_->port(); }

  /// This agent is host 0 of a new generation: serves at the ports above, and reserves others for
  /// the next. No key or connection of an earlier generation is ever met. Errors: as above.
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

}  // namespace lockstep::inline internal
