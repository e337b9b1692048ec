#include "lockstep/launch/rendezvous/workers_store.h"

#include <fmt/format.h>

#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

bool agent_serves_torch(const RunOptions& options) {
  const bool fixed =
      options.rdzv_backend == "static" && (options.num_nodes > 1 || options.master_port != 0);
  return fixed || options.share_torch_store;
}

TorchStorePort::TorchStorePort(const std::string& host, int port, bool served) : reserved_(port) {
  if (served) listener_ = tcp_listen(host, reserved_.port());
}

WorkersStore::WorkersStore(std::string host, std::string secret, Wire wire, bool serves_torch)
    : host_(std::move(host)), secret_(std::move(secret)), wire_(wire), serves_torch_(serves_torch) {
  get_ready();
}

void WorkersStore::get_ready() {
  try {
    listener_ = tcp_listen(host_, 0);
    next_torch_.emplace(host_, 0, serves_torch_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    // The user's range is too small. As kUnavailable it would count as a loss of the rendezvous.
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("no ports for the next start of the ranks: {}", error.what()));
  }
}

void WorkersStore::serve() {
  server_.reset();
  server_.emplace(
      std::move(listener_),
      TcpStoreServerOptions{.host = host_, .secret = secret_, .wire = wire_, .on_full = on_full_});
  torch_.reset();
  torch_.swap(next_torch_);
  if (serves_torch_) torch_->serve();
  get_ready();
}

void WorkersStore::stop() {
  server_.reset();
  torch_.reset();
}

}  // namespace lockstep::inline internal
