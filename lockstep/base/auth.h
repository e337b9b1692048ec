#pragma once
// Proof that both ends of a connection belong to the same job, before anything else is parsed.
//
// A job secret is 32 random bytes made by the launcher, written as 64 hex digits. The exchange is
// mutual: each end sends 32 random bytes and answers with
//   HMAC-SHA-256(secret, label || own nonce || peer's nonce || build id)
// so that neither a replay nor a reflection works and two different builds refuse each other.
// With an empty secret the same exchange runs with an empty key: it then only tells strangers and
// other builds apart, and callers must keep to loopback.
//
// Where a job's wire is TLS, both ends say so in their hello, and TLS with a key made of the secret
// and both hellos takes the place of the digests (base/tls.h). Nothing is negotiated: whoever says
// otherwise than this end is refused, and whoever changes a hello on the way changes the key. On
// sockets within a host the hello says the same, and the rest is as without TLS.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/deadline.h"
#include "lockstep/error.h"

namespace lockstep {

/// The other end speaks this protocol, as the same build, and does not know the secret: to try
/// again is in vain. kMismatch.
class WrongSecret : public Error {
 public:
  explicit WrongSecret(const std::string& peer);
};

class TlsSession;

/// How the connections of a job between hosts carry their bytes; the same on all of its hosts.
enum class Wire : uint8_t {
  kPlain,
  kTls,  ///< Encrypted, but for sockets within a host. Needs a secret.
};

/// Is what goes through `fd` encrypted where the job's wire is `wire`? Not on a unix socket.
bool is_encrypted(Wire wire, int fd);
/// Errors: kInvalidArgument where the wire needs a secret and there is none.
void check_wire(std::string_view secret, Wire wire);

/// 64 hex digits from the kernel's random generator.
std::string make_job_secret();

using Digest = std::array<uint8_t, 32>;
using Nonce = std::array<uint8_t, 32>;

Nonce make_nonce();
Digest hmac_sha256(std::string_view key, std::string_view message);
/// Compares in constant time.
bool equal_digests(const Digest& a, const Digest& b);

/// What each end sends first: magic, build id, nonce. Fixed size, so it is read whole before it is
/// parsed.
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
/// Errors: kMismatch when `theirs` is another build or not this protocol at all; kInvalidArgument
/// when its wire is not `wire`.
void check_hello(const Hello& theirs, const std::string& peer, Wire wire = Wire::kPlain);
/// `role` ("client" or "server") is that of the end which sends the proof.
Digest make_proof(std::string_view secret, std::string_view role, const Hello& own,
                  const Hello& peers);
/// The key of the TLS session that follows these hellos.
Digest make_tls_key(std::string_view secret, std::string_view purpose, const Hello& client,
                    const Hello& server);

/// The server's half without a socket, for a server that must not block. Send greeting() at once,
/// feed() what comes until done(), then send answer().
/// Where the connection is encrypted it is done after the hellos, and there is no answer: a
/// TlsSession with tls_key() has still to prove the secret.
class ServerHandshake {
 public:
  ServerHandshake(std::string_view secret, std::string_view purpose, Wire wire = Wire::kPlain,
                  bool encrypted = false);

  std::string_view greeting() const;
  /// Takes bytes off the front of the stream and says how many; at most wanted().
  /// Errors: those of check_hello(), WrongSecret, as soon as it shows; `peer` is named in it. After
  /// WrongSecret send refusal().
  size_t feed(std::string_view bytes, const std::string& peer);
  /// Bytes still to come from the client in the present step; 0 when done.
  size_t wanted() const;
  bool done() const { return step_ == Step::kDone; }
  std::string_view answer() const;
  /// Instead of the answer: no proof. Without it the client would take a server that ends just then
  /// for one of another secret.
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

/// Both halves over a blocking or non-blocking socket. `purpose` ("store", "comm") keeps a proof
/// for one service from opening another. Errors: WrongSecret, kMismatch (other build, other
/// protocol), kTimeout, kPeerLost; of the client kUnavailable when a server that had greeted closes
/// the connection without an answer: it is ending.
void authenticate_client(int fd, std::string_view secret, std::string_view purpose,
                         Deadline deadline);
void authenticate_server(int fd, std::string_view secret, std::string_view purpose,
                         Deadline deadline);

/// The client's half for a job whose wire is `wire`. The session through which all further bytes
/// go; null where they go as they are. The peer must wait to be asked: what it sends unasked is not
/// seen before its next bytes come. Errors: kInvalidArgument too (the peer's wire is another).
std::unique_ptr<TlsSession> authenticate_client(int fd, std::string_view secret,
                                                std::string_view purpose, Wire wire,
                                                Deadline deadline);

}  // namespace lockstep
