#pragma once
// One client as the server's thread sees it: handshake, then messages in and out, never blocking.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/auth.h"
#include "lockstep/base/in_child.h"
#include "lockstep/base/tls.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/store/tcp/protocol.h"

namespace lockstep {

class ServerConnection {
 public:
  /// `fd`: non-blocking. The greeting goes out at once.
  ServerConnection(UniqueFd fd, uint64_t id, std::string_view secret, Wire wire = Wire::kPlain);

  using OnRequest = std::function<void(RequestFrame)>;
  /// Reads once what is there, then serve_requests(). False when the client has closed. Errors:
  /// kMismatch (handshake), kCorrupt, kInvalidArgument, kIo: drop it.
  bool receive(const OnRequest& on_request);
  /// Calls `on_request` for each whole message that has come, until more than kPauseBacklog waits
  /// to be taken (a short request can ask for a long reply, and a thousand of them fit in one
  /// read), or the connection is found gone.
  void serve_requests(const OnRequest& on_request);

  /// Sends what the socket takes and keeps the rest. False when the connection is gone.
  bool send(std::string_view bytes);
  bool flush() { return send({}); }

  int fd() const { return fd_.get(); }
  uint64_t id() const { return id_; }
  const std::string& peer() const { return peer_; }
  /// A process of this host and of this user.
  bool is_own() const { return own_; }
  bool proved() const { return !handshake_ && (!tls_ || tls_->established()); }
  /// A client that does not take its replies is not read from, and its requests are not answered,
  /// beyond this.
  static constexpr size_t kPauseBacklog = 1 << 20;
  /// Bytes that the client has not taken yet.
  size_t backlog() const { return output_.size() - sent_; }
  /// What they and those before them take up here: a small multiple of the largest backlog.
  size_t room_taken() const { return output_.capacity(); }

  uint32_t interest = 0;  ///< The events that epoll has been asked for; kept by the loop.

 private:
  std::string_view take_handshake(std::string_view bytes);
  std::string unseal(std::string_view bytes);
  bool put(std::string_view bytes);

  UniqueFd fd_;
  NotInChild not_in_child_;
  uint64_t id_;
  std::string peer_;
  const bool own_;
  const bool encrypted_;
  std::optional<ServerHandshake> handshake_;  ///< Until it is done.
  std::unique_ptr<TlsSession> tls_;           ///< After it, where bytes are encrypted.
  FrameReader reader_{kMaxRequestBody};
  std::string output_;
  size_t sent_ = 0;    ///< Bytes of output_ that are out.
  bool gone_ = false;  ///< Sending has failed.
};

}  // namespace lockstep
