#pragma once
// The server's half of a handshake over a socket; the product's servers feed theirs piece by piece.

#include <array>
#include <string>
#include <string_view>

#include "lockstep/base/auth.h"
#include "lockstep/base/socket.h"

namespace lockstep::testing {

/// The counterpart of authenticate_client(). Errors: also WrongSecret.
inline void authenticate_server(int fd, std::string_view secret, std::string_view purpose,
                                Deadline deadline) {
  const std::string peer = peer_name(fd);
  ServerHandshake handshake(secret, purpose);
  send_all(fd, handshake.greeting().data(), handshake.greeting().size(), deadline, peer);
  while (!handshake.done()) {
    std::array<char, sizeof(Hello)> bytes;
    const size_t size = handshake.wanted();
    recv_all(fd, bytes.data(), size, deadline, peer);
    try {
      handshake.feed({bytes.data(), size}, peer);
    } catch (const WrongSecret&) {
      const std::string_view refusal = ServerHandshake::refusal();
      try {
        send_all(fd, refusal.data(), refusal.size(), deadline, peer);
      } catch (const Error&) {  // the client does not read it
      }
      throw;
    }
  }
  send_all(fd, handshake.answer().data(), handshake.answer().size(), deadline, peer);
}

}  // namespace lockstep::testing
