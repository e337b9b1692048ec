#pragma once
// A server of torch's TCPStore, for programs that connect to MASTER_ADDR:MASTER_PORT as clients:
// under torchrun the agent of node 0 serves one there.
//
// torch's protocol has no authentication: whoever reaches the port reads and writes this store, as
// it is with torch's own server. Nothing of Lockstep's own is in it. A client that breaks a rule of
// torch_protocol.h or torch_state.h is disconnected, with a line in the log for its host.

#include <memory>

#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// Serves until destroyed, in one thread with epoll, any number of clients.
class TorchStoreServer {
 public:
  /// `listener`: see tcp_listen(). Errors: kIo.
  explicit TorchStoreServer(UniqueFd listener);
  ~TorchStoreServer();
  TorchStoreServer(const TorchStoreServer&) = delete;
  TorchStoreServer& operator=(const TorchStoreServer&) = delete;

  int port() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
