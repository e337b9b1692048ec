#include <fmt/format.h>

#include <thread>

#include "lockstep/base/in_child.h"
#include "lockstep/base/log.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "lockstep/store/tcp/server_loop.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep::inline internal {
namespace {

bool for_own_user(const TcpStoreServerOptions& options) {
  return options.own_user_only || options.secret.empty();
}

UniqueFd check_reach(UniqueFd listener, const TcpStoreServerOptions& options) {
  check_wire(options.secret, options.wire);
  if (for_own_user(options) && !is_loopback(listener.get())) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("store on '{}': without a job secret only loopback is served; give a "
                            "secret, or listen on 127.0.0.1",
                            options.host));
  }
  return listener;
}

}  // namespace

class TcpStoreServer::Impl {
 public:
  Impl(UniqueFd listener, const TcpStoreServerOptions& options)
      : port_(local_port(listener.get())),
        loop_(std::move(listener), options.secret, options.wire, options.handshake_limit,
              for_own_user(options), options.on_full),
        thread_(start_thread_with_signals_blocked([this] { serve(); })) {}
  ~Impl() {
    if (generation_ != fork_generation()) {
      leave_to_parent(thread_);
      return;
    }
    loop_.stop();
    thread_.join();
  }

  int port() const { return port_; }
  bool wait_until_unused(Deadline deadline) { return loop_.wait_until_unused(deadline); }

 private:
  void serve() {
    try {
      loop_.run();
    } catch (const std::exception& error) {
      // The clients learn it from their connections when the loop is destroyed.
      log_error(std::string("the store's server ended: ") + error.what());
    }
  }

  const uint32_t generation_ = fork_generation();
  int port_;
  StoreServerLoop loop_;
  std::thread thread_;
};

TcpStoreServer::TcpStoreServer(const TcpStoreServerOptions& options)
    : TcpStoreServer(tcp_listen(options.host, options.port), options) {}

TcpStoreServer::TcpStoreServer(UniqueFd listener, const TcpStoreServerOptions& options)
    : impl_(std::make_unique<Impl>(check_reach(std::move(listener), options), options)) {}

TcpStoreServer::~TcpStoreServer() = default;

int TcpStoreServer::port() const {
  return impl_->port();
}

bool TcpStoreServer::wait_until_unused(Deadline deadline) {
  return impl_->wait_until_unused(deadline);
}

}  // namespace lockstep::inline internal
