#pragma once
// Proof that both ends of a connection belong to the same job, before anything else is parsed.
//
// A job secret is 32 random bytes made by the launcher, written as 64 hex digits. The exchange is
// mutual: each end sends 32 random bytes and answers with
//   HMAC-SHA-256(secret, label || own nonce || peer's nonce || build id)
// Neither a replay nor a reflection works, and two different builds refuse each other. With an
// empty secret the same exchange runs with an empty key. It then only detects foreign clients and
// other builds, and callers must stay on loopback.
//
// If a job's wire is TLS, both hellos contain that. TLS then replaces the digests, with a key made
// from the secret and both hellos (base/tls.h). Nothing is negotiated: an end with another setting
// is refused, and a changed hello changes the key. On sockets within a host the hello contains the
// same, and the rest is as without TLS.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/deadline.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// The other end speaks this protocol, as the same build, but does not have the secret: a retry is
/// useless. kMismatch.
class WrongSecret : public Error {
 public:
  explicit WrongSecret(const std::string& peer);
};

class TlsSession;

/// The encoding of a job's connections between hosts; the same on all of its hosts.
enum class Wire : uint8_t {
  kPlain,
  kTls,  ///< Encrypted, except for sockets within a host. Needs a secret.
};

/// True if the bytes through `fd` are encrypted when the job's wire is `wire`. Not on a unix
/// socket.
bool is_encrypted(Wire wire, int fd);
/// Errors: kInvalidArgument if the wire needs a secret and there is none.
void check_wire(std::string_view secret, Wire wire);

/// 64 hex digits from the kernel's random generator.
std::string make_job_secret();

using Digest = std::array<uint8_t, 32>;
using Nonce = std::array<uint8_t, 32>;

Nonce make_nonce();
Digest hmac_sha256(std::string_view key, std::string_view message);
/// Compares in constant time.
bool equal_digests(const Digest& a, const Digest& b);

/// The first bytes of each end: magic, build id, nonce. Fixed size, so it is read whole before it
/// is parsed.
struct Hello {
  static constexpr uint32_t kMagic = 0x4b434f4c;     // "LOCK"
  static constexpr uint32_t kTlsMagic = 0x53434f4c;  // "LOCS"
  uint32_t magic = kMagic;
  std::array<char, 28> build{};
  Nonce nonce{};
};
static_assert(sizeof(Hello) == 64);

/// This build's hello with a fresh nonce.
Hello make_hello(Wire wire = Wire::kPlain);
/// Errors: kMismatch if `theirs` is another build or another protocol; kInvalidArgument if its wire
/// is not `wire`.
void check_hello(const Hello& theirs, const std::string& peer, Wire wire = Wire::kPlain);
/// `role` ("client" or "server") is the role of the end that sends the proof.
Digest make_proof(std::string_view secret, std::string_view role, const Hello& own,
                  const Hello& peers);
/// The key of the TLS session that follows these hellos.
Digest make_tls_key(std::string_view secret, std::string_view purpose, const Hello& client,
                    const Hello& server);

/// The server's half without a socket, for a server that must not block. Send greeting() at once,
/// feed() incoming bytes until done(), then send answer(). If the connection is encrypted, it is
/// done after the hellos and has no answer: a TlsSession with tls_key() must still prove the
/// secret.
class ServerHandshake {
 public:
  ServerHandshake(std::string_view secret, std::string_view purpose, Wire wire = Wire::kPlain,
                  bool encrypted = false);

  std::string_view greeting() const;
  /// Takes bytes from the front of the stream and returns their number; at most wanted(). Errors:
  /// those of check_hello(); WrongSecret, as soon as it is detected. They name `peer`. After
  /// WrongSecret send refusal().
  size_t feed(std::string_view bytes, const std::string& peer);
  /// Bytes that the client still has to send in the present step; 0 when done.
  size_t wanted() const;
  bool done() const { return step_ == Step::kDone; }
  std::string_view answer() const;
  /// Sent instead of the answer: no proof. Without it the client would take a server that is ending
  /// for one with another secret.
  static std::string_view refusal();
  Digest tls_key() const { return make_tls_key(secret_, purpose_, theirs_, own_); }

 private:
  enum class Step { kHello, kProof, kDone };
  void take_hello(const std::string& peer);
  void take_proof(const std::string& peer);

  std::string secret_;
  std::string purpose_;
  Wire wire_;
  bool encrypted_;
  Hello own_;
  Hello theirs_;
  std::string input_;
  std::string answer_;
  Step step_ = Step::kHello;
};

/// The client's half over a blocking or non-blocking socket. `purpose` ("store", "comm") prevents
/// the use of a proof for another service. Errors: WrongSecret, kMismatch (other build, other
/// protocol), kTimeout, kPeerLost; kUnavailable if the server sent its hello and closes the
/// connection without an answer: it is ending.
void authenticate_client(int fd, std::string_view secret, std::string_view purpose,
                         Deadline deadline);

/// The client's half for a job whose wire is `wire`. Returns the session for all further bytes;
/// null if they are sent unencrypted. The peer must not send before a request: such bytes are not
/// seen before its next bytes come. Errors: kInvalidArgument too (the peer's wire is another).
std::unique_ptr<TlsSession> authenticate_client(int fd, std::string_view secret,
                                                std::string_view purpose, Wire wire,
                                                Deadline deadline);

}  // namespace lockstep::inline internal
