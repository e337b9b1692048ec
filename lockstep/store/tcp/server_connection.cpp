#include "lockstep/store/tcp/server_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "lockstep/base/descriptors.h"
#include "lockstep/base/namespaces.h"
#include "lockstep/base/passed_descriptors.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// Read per turn, so that one busy client does not delay the others.
constexpr size_t kReadBytes = 1 << 16;

}  // namespace

ServerConnection::ServerConnection(UniqueFd fd, uint64_t id, std::string_view secret, Wire wire)
    : fd_(std::move(fd)),
      not_in_child_(fd_.get()),
      id_(id),
      peer_(peer_name(fd_.get())),
      own_(is_process_of(::geteuid(), fd_.get())),
      encrypted_(is_encrypted(wire, fd_.get())) {
  handshake_.emplace(secret, "store", wire, encrypted_);
  put(handshake_->greeting());
}

bool ServerConnection::receive(const OnRequest& on_request) {
  std::array<char, kReadBytes> buffer;
  const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got == 0) return false;
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    if (is_lost(errno)) return false;
    throw io_error("receive");
  }
  const auto rest = take_handshake({buffer.data(), static_cast<size_t>(got)});
  if (tls_) {
    reader_.append(unseal(rest));
  } else if (proved()) {
    reader_.append(rest);
  }
  if (proved()) serve_requests(on_request);
  return !gone_;
}

void ServerConnection::serve_requests(const OnRequest& on_request) {
  // First: the client may have given up a call there before it sent the messages that are here.
  serve_call_slot(on_request);
  while (!gone_ && backlog() <= kPauseBacklog) {
    const auto body = reader_.next();
    paused_ = body.has_value();
    if (!body) return;
    on_request(decode_request(*body));
  }
  paused_ = !gone_;
}

void ServerConnection::serve_call_slot(const OnRequest& on_request) {
  if (!call_slot_ || gone_ || backlog() > kPauseBacklog) return;
  const auto body = call_slot_->take_request();
  if (!body) return;
  RequestFrame frame = decode_request(*body);
  in_slot_ = frame.id;
  on_request(std::move(frame));
  if (std::exchange(in_slot_, 0) != 0) call_slot_->answer_over_connection();
}

bool ServerConnection::answer(uint64_t request, const StoreReply& reply) {
  const std::string frame = encode(ReplyFrame{request, reply});
  if (in_slot_ == 0 || in_slot_ != request) return send(frame);
  in_slot_ = 0;
  if (call_slot_->answer(body_of(frame))) return true;
  call_slot_->answer_over_connection();
  return send(frame);
}

bool ServerConnection::answer_with_call_slot(uint64_t request, CallSlots& slots) {
  StoreReply reply;
  auto opened = may_have_call_slot() ? slots.open(id_) : std::nullopt;
  if (opened) {
    reply.yes = true;
    reply.number = static_cast<int64_t>(opened->slot->index());
    const std::string frame = encode(ReplyFrame{request, reply});
    const auto sent = send_with_descriptors(fd_.get(), frame, opened->descriptors, MSG_DONTWAIT);
    if (std::cmp_equal(sent, frame.size())) {
      call_slot_ = std::move(opened->slot);
      return true;
    }
    slots.close(opened->slot->index());
    reply = {};
    if (sent > 0) return false;  // a part of a frame cannot be taken back
  }
  return send(encode(ReplyFrame{request, reply}));
}

/// Descriptors go over a unix socket, whose other end is of this user, and beside the bytes of one
/// send.
bool ServerConnection::may_have_call_slot() const {
  return own_ && !tls_ && !call_slot_ && backlog() == 0 && has_descriptor_for_client(fd_.get());
}

uint32_t ServerConnection::wanted_events() const {
  return (backlog() > 0 || paused_ ? EPOLLOUT : 0U) | (backlog() <= kPauseBacklog ? EPOLLIN : 0U);
}

std::optional<size_t> ServerConnection::call_slot() const {
  return call_slot_ ? std::optional(call_slot_->index()) : std::nullopt;
}

/// Passes bytes to the handshake and returns those after it.
std::string_view ServerConnection::take_handshake(std::string_view bytes) {
  while (handshake_ && !bytes.empty()) {
    try {
      bytes.remove_prefix(handshake_->feed(bytes, peer_));
    } catch (const WrongSecret&) {
      send(ServerHandshake::refusal());
      throw;
    }
    if (!handshake_->done()) continue;
    put(handshake_->answer());
    if (encrypted_) {
      tls_ = std::make_unique<TlsSession>(TlsSession::Side::kServer, handshake_->tls_key(), peer_);
    }
    handshake_.reset();
  }
  return bytes;
}

/// The content of the client's bytes. A refusal is sent to the client.
std::string ServerConnection::unseal(std::string_view bytes) {
  try {
    auto plain = tls_->open(bytes);
    put(tls_->take_output());
    return plain;
  } catch (const Error&) {
    put(tls_->take_output());
    throw;
  }
}

bool ServerConnection::send(std::string_view bytes) {
  return tls_ && !bytes.empty() ? put(tls_->seal(bytes)) : put(bytes);
}

bool ServerConnection::put(std::string_view bytes) {
  if (output_.put(fd_.get(), bytes)) return true;
  gone_ = true;
  return false;
}

}  // namespace lockstep::inline internal
