#pragma once
// TLS 1.3 between two ends that share a key: bytes in, bytes out, no socket.
//
// The handshake itself proves the key (an external pre-shared key, always with a Diffie-Hellman
// exchange, psk_dhe_ke: RFC 8446, 2.2 and 4.2.9), so there are no certificates to hand out, and who
// learns the secret later cannot read what was recorded before. Nothing else is offered or taken:
// no earlier version, no certificate, no ticket, no early data, one cipher (AES-128-GCM).

#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/auth.h"

namespace lockstep {

/// One end of one connection. Not for several threads at once. Costs about 10 kB while nothing is
/// under way, and to set up half a millisecond of each end's time.
class TlsSession {
 public:
  enum class Side { kClient, kServer };

  /// `key`: of this connection alone, and of both ends. `peer`: for messages. A client has
  /// something to say at once; see take_output().
  TlsSession(Side side, const Digest& key, std::string peer);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Both ends have proved the key. Only then seal() may be called, and open() returns bytes.
  bool established() const { return established_; }

  /// Takes the peer's next bytes, in whatever pieces they come, and returns what they hold.
  /// Errors: WrongSecret, kMismatch (the peer does not speak TLS, or says too much without a proof:
  /// kMaxHandshakeBytes and what came with the last of them), kCorrupt (afterwards: bytes were
  /// changed, left out or brought in on the way). The session is over then; send take_output().
  std::string open(std::string_view sealed);
  static constexpr size_t kMaxHandshakeBytes = 4096;

  /// `plain`, as it is to be sent. Costs 22 bytes for every 16 kB, and two copies.
  std::string seal(std::string_view plain);

  /// What the session has to say by itself (handshake, the reason why it ends): to be sent after
  /// construction and after every open(), also one that failed. Mostly empty.
  std::string take_output();

 private:
  class Impl;
  void shake_hands();

  const std::unique_ptr<Impl> impl_;
  const std::string peer_;
  size_t handshake_bytes_ = 0;  ///< Taken until now.
  bool established_ = false;
};

}  // namespace lockstep
