#include "lockstep/launch/rendezvous/torch_store_port.h"

#include "lockstep/base/socket.h"

namespace lockstep {

bool agent_serves_torch(const RunOptions& options) {
  const bool fixed =
      options.rdzv_backend == "static" && (options.num_nodes > 1 || options.master_port != 0);
  return fixed || options.share_torch_store;
}

TorchStorePort::TorchStorePort(const std::string& host, int port, bool served) : reserved_(port) {
  if (served) listener_ = tcp_listen(host, reserved_.port());
}

}  // namespace lockstep
