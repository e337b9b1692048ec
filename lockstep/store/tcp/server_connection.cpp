#include "lockstep/store/tcp/server_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lockstep/base/namespaces.h"
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
  if (!proved()) return true;
  serve_requests(on_request);
  return true;
}

void ServerConnection::serve_requests(const OnRequest& on_request) {
  while (!gone_ && backlog() <= kPauseBacklog) {
    const auto body = reader_.next();
    if (!body) return;
    on_request(decode_request(*body));
  }
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
