#pragma once
// TLS 1.3 between two ends that share a key: bytes in, bytes out, no socket.
//
// The handshake itself proves the key: an external pre-shared key, always with a Diffie-Hellman
// exchange (psk_dhe_ke: RFC 8446, 2.2 and 4.2.9). So there are no certificates to distribute, and a
// later leak of the secret does not reveal recorded traffic. Nothing else is offered or accepted:
// no earlier version, no certificate, no ticket, no early data, one cipher (AES-128-GCM).

#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/auth.h"

namespace lockstep::inline internal {

/// One end of one connection. Not for several threads at once. Costs about 10 kB while idle, and
/// half a millisecond of each end's time to set up.
class TlsSession {
 public:
  enum class Side { kClient, kServer };

  /// `key`: for this connection alone, the same at both ends. `peer`: for messages. A client has
  /// output at once; see take_output().
  TlsSession(Side side, const Digest& key, std::string peer);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// True once both ends have proved the key. Only then seal() may be called, and open() returns
  /// bytes.
  bool established() const { return established_; }

  /// Takes the peer's next bytes, in pieces of any size, and returns their plain text. Errors:
  /// WrongSecret; kMismatch (the peer does not speak TLS, or sends more than kMaxHandshakeBytes
  /// without a proof); kCorrupt (afterwards: bytes were changed, removed or inserted). The session
  /// is over then; send take_output().
  std::string open(std::string_view sealed);
  static constexpr size_t kMaxHandshakeBytes = 4096;

  /// Returns `plain` encrypted, to be sent. Costs 22 bytes for every 16 kB, and two copies.
  std::string seal(std::string_view plain);

  /// The session's own output (handshake, the reason of its end). Send it after construction and
  /// after every open(), also after a failed one. Mostly empty.
  std::string take_output();

 private:
  class Impl;
  void shake_hands();

  const std::unique_ptr<Impl> impl_;
  const std::string peer_;
  size_t handshake_bytes_ = 0;  ///< Received so far.
  bool established_ = false;
};

}  // namespace lockstep::inline internal
