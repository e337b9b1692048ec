#pragma once
// A server of torch's TCPStore, for programs that connect to MASTER_ADDR:MASTER_PORT as clients:
// under torchrun the agent of node 0 serves one there.
//
// torch's protocol has no authentication: whoever reaches the port reads and writes this store, as
// it is with torch's own server. Nothing of Lockstep's own is in it. A client that breaks a rule of
// torch_protocol.h, torch_state.h or TorchLimits is disconnected, with a line in the log for its
// host.

#include <chrono>
#include <cstddef>
#include <memory>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

/// Limits for all clients together. One that has greeted may be silent for ever.
struct TorchLimits {
  /// Memory of requests that have not come whole, and of keys that are waited for. Beyond it the
  /// client with the most is disconnected.
  size_t unfinished_bytes = size_t{512} << 20;
  /// Replies that clients have not taken. Beyond it no request is carried out until half are taken.
  /// A reply may exceed it once.
  size_t untaken_bytes = size_t{256} << 20;
  /// After that time of standing still, clients are disconnected, those with the most first.
  std::chrono::milliseconds taking{30'000};
  /// For a client's greeting, or its first whole request if it has none (before PyTorch 2.1). How
  /// many of a foreign host may be without one: see Strangers.
  std::chrono::milliseconds greeting{10'000};
};

/// On loopback it only takes clients of its own user and of root, where `inet_diag` answers. Serves
/// until destroyed, in one thread with epoll, any number of clients.
class TorchStoreServer {
 public:
  /// `listener`: see tcp_listen(). Errors: kIo.
  explicit TorchStoreServer(UniqueFd listener, const TorchLimits& limits = {});
  ~TorchStoreServer();
  TorchStoreServer(const TorchStoreServer&) = delete;
  TorchStoreServer& operator=(const TorchStoreServer&) = delete;

  int port() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::inline internal
