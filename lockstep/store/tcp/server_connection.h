#pragma once
// One client as seen by the server's thread: handshake, then messages in and out, never blocking.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/auth.h"
#include "lockstep/base/in_child.h"
#include "lockstep/base/tls.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/store/tcp/call_slot.h"
#include "lockstep/store/tcp/out_buffer.h"
#include "lockstep/store/tcp/protocol.h"

namespace lockstep::inline internal {

class ServerConnection {
 public:
  /// `fd`: non-blocking. Sends the greeting at once.
  ServerConnection(UniqueFd fd, uint64_t id, std::string_view secret, Wire wire = Wire::kPlain);

  using OnRequest = std::function<void(RequestFrame)>;
  /// Reads once, then calls serve_requests(). False if the connection is lost. Errors: kMismatch
  /// (handshake), kCorrupt, kInvalidArgument, kIo: drop it.
  bool receive(const OnRequest& on_request);
  /// Calls `on_request` for the request in the call slot, and then for each complete message. Stops
  /// once more than kPauseBacklog bytes wait to be taken, or the connection is lost. A short
  /// request can cause a long reply, and a thousand of them fit in one read.
  void serve_requests(const OnRequest& on_request);

  /// Answers a request: in the call slot if that had it, and the reply is short. False if the
  /// connection is lost.
  bool answer(uint64_t request, const StoreReply& reply);
  /// Answers a request for a call slot.
  bool answer_with_call_slot(uint64_t request, CallSlots& slots);
  /// Index of its call slot; nothing: it has none.
  std::optional<size_t> call_slot() const;

  /// Sends as much as the socket takes and keeps the rest. False if the connection is lost.
  bool send(std::string_view bytes);
  bool flush() { return send({}); }

  int fd() const { return fd_.get(); }
  uint64_t id() const { return id_; }
  const std::string& peer() const { return peer_; }
  /// A process of this user on this host.
  bool is_own() const { return own_; }
  bool proved() const { return !handshake_ && (!tls_ || tls_->established()); }
  /// Beyond this backlog a client is not read from, and its requests are not answered.
  static constexpr size_t kPauseBacklog = 1 << 20;
  /// Bytes that the client has not taken yet.
  size_t backlog() const { return output_.size(); }
  /// Memory of the backlog: a small multiple of its largest size.
  size_t room_taken() const { return output_.capacity(); }

  /// For epoll. A connection that was paused for its backlog is served again once that has gone
  /// out. That may happen while another client is served, so EPOLLOUT is wanted without a backlog.
  uint32_t wanted_events() const;

  uint32_t interest = 0;  ///< The events registered with epoll; kept by the loop.

 private:
  std::string_view take_handshake(std::string_view bytes);
  std::string unseal(std::string_view bytes);
  void serve_call_slot(const OnRequest& on_request);
  bool may_have_call_slot() const;
  bool put(std::string_view bytes);

  UniqueFd fd_;
  NotInChild not_in_child_;
  uint64_t id_;
  std::string peer_;
  const bool own_;
  const bool encrypted_;
  std::optional<ServerHandshake> handshake_;  ///< Until it is done.
  std::unique_ptr<TlsSession> tls_;           ///< After it, if bytes are encrypted.
  FrameReader reader_{kMaxRequestBody};
  OutBuffer output_;
  bool gone_ = false;    ///< Sending has failed.
  bool paused_ = false;  ///< serve_requests() may have left some, because of the backlog.
  std::unique_ptr<ServerCallSlot> call_slot_;
  uint64_t in_slot_ = 0;  ///< The request in it that is being served; 0: none.
};

}  // namespace lockstep::inline internal
