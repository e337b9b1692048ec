#pragma once
// The store over TCP: one server in one process of the job, any number of clients.

#include <memory>
#include <string>

#include "lockstep/base/socket.h"
#include "lockstep/store/store.h"

namespace lockstep {

struct TcpStoreServerOptions {
  std::string host =
      "127.0.0.1";     ///< Address to listen on. Without a secret only loopback is allowed.
  int port = 0;        ///< 0: a free one; see TcpStoreServer::port().
  std::string secret;  ///< Job secret (base/auth.h); may be empty on loopback.
};

/// Serves until destroyed; one thread with epoll, however many clients.
/// Errors of the constructor: kUnavailable (port taken), kInvalidArgument (no secret, not
/// loopback).
class TcpStoreServer {
 public:
  explicit TcpStoreServer(const TcpStoreServerOptions& options);
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  int port() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Connects and proves the secret; tries again while nobody listens, until the deadline.
/// Errors: kTimeout, kMismatch (another job's store, another build, not a store).
std::shared_ptr<Store> connect_tcp_store(const Endpoint& server, const std::string& secret,
                                         Deadline deadline);

}  // namespace lockstep
