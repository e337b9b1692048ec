#pragma once
// The store over TCP: one server in one process of the job, any number of clients.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "lockstep/base/addresses.h"
#include "lockstep/base/auth.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/store.h"

namespace lockstep::inline internal {

struct TcpStoreServerOptions {
  std::string host =
      "127.0.0.1";     ///< Address to listen on. Without a secret only loopback is allowed.
  int port = 0;        ///< 0: a free one; see TcpStoreServer::port().
  std::string secret;  ///< Job secret (base/auth.h); empty: as `own_user_only`.
  /// Admits only processes of this user and host, by the kernel's report of the peer; `secret` then
  /// only distinguishes jobs. No client can connect over TCP then. Loopback only.
  bool own_user_only = false;
  /// Time for a client to prove the secret; then it is dropped.
  std::chrono::milliseconds handshake_limit{5000};
  Wire wire = Wire::kPlain;  ///< Of the job; see connect_tcp_store().
  /// Called once, in the server's thread, when all descriptors up to the hard limit are in use by
  /// lasting clients: waiting clients can never connect. `why` is the message for them.
  std::function<void(const std::string& why)> on_full = {};
};

/// Serves until destroyed, in one thread with epoll for any number of clients. Costs a thread and a
/// socket to start. When descriptors run out, it raises this process's soft limit to the hard one.
/// Errors of the constructor: kUnavailable (port taken, or with `own_user_only` its name among the
/// host's sockets), kInvalidArgument (no secret, and not loopback or TLS).
class TcpStoreServer {
 public:
  explicit TcpStoreServer(const TcpStoreServerOptions& options);

  /// The same on a socket that listens already (see tcp_listen()); host and port of `options` are
  /// ignored. For a program that starts the server only at the first connection.
  TcpStoreServer(UniqueFd listener, const TcpStoreServerOptions& options);
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  int port() const;

  /// Waits until no client is connected: for a process that could end before its last client has
  /// read its last answer. False if the deadline passes first.
  bool wait_until_unused(Deadline deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Connects and proves the secret; retries until the deadline while nobody listens. The store has
/// one connection for all threads and no thread of its own. It can still be used after kTimeout;
/// after kPeerLost every call throws that. `wire`: the job's; with kTls all traffic between hosts
/// is encrypted (docs/design/rendezvous.md). An empty secret: as connect_user_store(). Errors:
/// kTimeout, kMismatch (another job's store, another build, not a store), kInvalidArgument (the
/// server has another wire; TLS without a secret).
std::shared_ptr<Store> connect_tcp_store(const Endpoint& server, const std::string& secret,
                                         Deadline deadline, Wire wire = Wire::kPlain);

/// The same if only the user identifies both ends: a server of this user, on this host, with
/// `own_user_only`. Errors: as above; also kMismatch if the server belongs to another user.
std::shared_ptr<Store> connect_user_store(const Endpoint& server, const std::string& secret,
                                          Deadline deadline);

}  // namespace lockstep::inline internal
