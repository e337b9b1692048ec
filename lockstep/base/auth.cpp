#include "lockstep/base/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cstring>

#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"
#include "lockstep/base/tls.h"
#include "lockstep/error.h"
#include "lockstep/version.h"

namespace lockstep::inline internal {
namespace {

Error other_wire(const std::string& peer, Wire own) {
  return Error(ErrorCode::kInvalidArgument,
               own == Wire::kTls ? peer +
                                       " does not use TLS, as LOCKSTEP_TLS=1 demands here: set "
                                       "LOCKSTEP_TLS=1 on every host of the job, or on none"
                                 : peer +
                                       " uses TLS only: set LOCKSTEP_TLS=1 here too, as on "
                                       "every host of its job");
}

Error foreign_protocol(const std::string& peer) {
  return Error(ErrorCode::kMismatch, peer + " does not speak Lockstep's protocol");
}

void fill_random(void* data, size_t size) {
  if (::getrandom(data, size, 0) != static_cast<ssize_t>(size)) throw io_error("getrandom");
}

std::string label(std::string_view purpose, std::string_view role) {
  return std::string(purpose) + "/" + std::string(role);
}

bool is_magic(uint32_t magic) {
  return magic == Hello::kMagic || magic == Hello::kTlsMagic;
}

template <class Plain>
std::string_view bytes_of(const Plain& plain) {
  return {reinterpret_cast<const char*>(&plain), sizeof plain};
}

}  // namespace

WrongSecret::WrongSecret(const std::string& peer)
    : Error(ErrorCode::kMismatch, peer +
                                      " does not know this job's secret: it belongs to another "
                                      "job, or LOCKSTEP_SECRET differs") {}

bool is_encrypted(Wire wire, int fd) {
  int family = AF_UNSPEC;
  socklen_t size = sizeof family;
  return wire == Wire::kTls &&
         !(::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX);
}

void check_wire(std::string_view secret, Wire wire) {
  if (wire == Wire::kPlain || !secret.empty()) return;
  throw Error(ErrorCode::kInvalidArgument,
              "LOCKSTEP_TLS=1 needs a secret, of which the key is made: set LOCKSTEP_SECRET to the "
              "same text (openssl rand -hex 32) on all hosts");
}

Nonce make_nonce() {
  Nonce nonce;
  fill_random(nonce.data(), nonce.size());
  return nonce;
}

std::string make_job_secret() {
  return hex_digits(make_nonce());
}

Digest hmac_sha256(std::string_view key, std::string_view message) {
  Digest digest;
  unsigned size = 0;
  const auto* made = ::HMAC(
      ::EVP_sha256(), key.empty() ? "" : key.data(), static_cast<int>(key.size()),
      reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest.data(), &size);
  if (made == nullptr || size != digest.size())
    throw Error(ErrorCode::kInternal, "HMAC-SHA-256 failed");
  return digest;
}

bool equal_digests(const Digest& a, const Digest& b) {
  return ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Hello make_hello(Wire wire) {
  Hello hello;
  if (wire == Wire::kTls) hello.magic = Hello::kTlsMagic;
  std::strncpy(hello.build.data(), build_id().c_str(), hello.build.size() - 1);
  hello.nonce = make_nonce();
  return hello;
}

void check_hello(const Hello& theirs, const std::string& peer, Wire wire) {
  if (!is_magic(theirs.magic)) throw foreign_protocol(peer);
  const std::string build(theirs.build.data(), strnlen(theirs.build.data(), theirs.build.size()));
  if (build != build_id()) {
    throw Error(ErrorCode::kMismatch, peer + " runs build '" + build + "', this is build '" +
                                          build_id() + "'; start the same build on every rank");
  }
  if ((theirs.magic == Hello::kTlsMagic) != (wire == Wire::kTls)) throw other_wire(peer, wire);
}

Digest make_proof(std::string_view secret, std::string_view role, const Hello& own,
                  const Hello& peers) {
  std::string message(role);
  message.append(bytes_of(own)).append(bytes_of(peers));
  return hmac_sha256(secret, message);
}

Digest make_tls_key(std::string_view secret, std::string_view purpose, const Hello& client,
                    const Hello& server) {
  return make_proof(secret, label(purpose, "tls"), client, server);
}

ServerHandshake::ServerHandshake(std::string_view secret, std::string_view purpose, Wire wire,
                                 bool encrypted)
    : secret_(secret),
      purpose_(purpose),
      wire_(wire),
      encrypted_(encrypted),
      own_(make_hello(wire)) {}

std::string_view ServerHandshake::greeting() const {
  return bytes_of(own_);
}

std::string_view ServerHandshake::answer() const {
  return answer_;
}

std::string_view ServerHandshake::refusal() {
  static constexpr Digest kRefusal{};
  return {reinterpret_cast<const char*>(kRefusal.data()), kRefusal.size()};
}

size_t ServerHandshake::wanted() const {
  if (step_ == Step::kDone) return 0;
  return (step_ == Step::kHello ? sizeof(Hello) : sizeof(Digest)) - input_.size();
}

size_t ServerHandshake::feed(std::string_view bytes, const std::string& peer) {
  const auto taken = bytes.substr(0, wanted());
  input_.append(taken);
  if (step_ == Step::kHello)
    take_hello(peer);
  else if (step_ == Step::kProof)
    take_proof(peer);
  return taken.size();
}

void ServerHandshake::take_hello(const std::string& peer) {
  std::memcpy(&theirs_, input_.data(), input_.size());
  // The first line of a foreign client may be shorter than a hello; do not wait for the rest of it.
  if (input_.size() >= sizeof theirs_.magic && !is_magic(theirs_.magic)) {
    throw foreign_protocol(peer);
  }
  if (wanted() > 0) return;
  check_hello(theirs_, peer, wire_);
  input_.clear();
  step_ = encrypted_ ? Step::kDone : Step::kProof;
}

void ServerHandshake::take_proof(const std::string& peer) {
  if (wanted() > 0) return;
  Digest proof;
  std::memcpy(proof.data(), input_.data(), proof.size());
  if (!equal_digests(proof, make_proof(secret_, label(purpose_, "client"), theirs_, own_)))
    throw WrongSecret(peer);
  answer_ = bytes_of(make_proof(secret_, label(purpose_, "server"), own_, theirs_));
  step_ = Step::kDone;
}

namespace {

/// The client's half of the exchange after the hellos. The client proves itself first, so a foreign
/// client learns nothing but a nonce.
void exchange_digests(int fd, std::string_view secret, std::string_view purpose, const Hello& own,
                      const Hello& theirs, const std::string& peer, Deadline deadline) {
  const Digest proof = make_proof(secret, label(purpose, "client"), own, theirs);
  send_all(fd, proof.data(), proof.size(), deadline, peer);
  Digest answer;
  recv_all(fd, answer.data(), answer.size(), deadline, peer);
  if (!equal_digests(answer, make_proof(secret, label(purpose, "server"), theirs, own)))
    throw WrongSecret(peer);
}

std::unique_ptr<TlsSession> begin_tls(int fd, const Digest& key, const std::string& peer,
                                      Deadline deadline) {
  auto session = std::make_unique<TlsSession>(TlsSession::Side::kClient, key, peer);
  std::array<char, TlsSession::kMaxHandshakeBytes> buffer;
  while (true) {
    const std::string output = session->take_output();
    send_all(fd, output.data(), output.size(), deadline, peer);
    if (session->established()) return session;
    const size_t size = recv_some(fd, buffer.data(), buffer.size(), deadline, peer);
    session->open({buffer.data(), size});
  }
}

}  // namespace

std::unique_ptr<TlsSession> authenticate_client(int fd, std::string_view secret,
                                                std::string_view purpose, Wire wire,
                                                Deadline deadline) {
  const std::string peer = peer_name(fd);
  const Hello own = make_hello(wire);
  Hello theirs;
  send_all(fd, &own, sizeof own, deadline, peer);
  recv_all(fd, &theirs, sizeof theirs, deadline, peer);
  check_hello(theirs, peer, wire);
  try {
    if (is_encrypted(wire, fd))
      return begin_tls(fd, make_tls_key(secret, purpose, own, theirs), peer, deadline);
    exchange_digests(fd, secret, purpose, own, theirs, peer, deadline);
    return nullptr;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kPeerLost) throw;
    throw Error(ErrorCode::kUnavailable, peer + " closed the connection instead of answering");
  }
}

void authenticate_client(int fd, std::string_view secret, std::string_view purpose,
                         Deadline deadline) {
  authenticate_client(fd, secret, purpose, Wire::kPlain, deadline);
}

}  // namespace lockstep::inline internal
