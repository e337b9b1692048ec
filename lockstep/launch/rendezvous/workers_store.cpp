#include "lockstep/launch/rendezvous/workers_store.h"

namespace lockstep {

WorkersStore::WorkersStore(std::string host, std::string secret, Wire wire)
    : host_(std::move(host)), secret_(std::move(secret)), wire_(wire) {
  get_ready();
}

void WorkersStore::get_ready() {
  listener_ = tcp_listen(host_, 0);
  next_torch_port_.emplace(0);
}

void WorkersStore::serve() {
  server_.reset();
  server_.emplace(
      std::move(listener_),
      TcpStoreServerOptions{.host = host_, .secret = secret_, .wire = wire_, .on_full = on_full_});
  torch_port_.reset();
  std::swap(torch_port_, next_torch_port_);
  get_ready();
}

void WorkersStore::stop() {
  server_.reset();
  torch_port_.reset();
}

}  // namespace lockstep
