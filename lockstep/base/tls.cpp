#include "lockstep/base/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// Both ends must use the same name for the key; it has no other meaning.
constexpr std::string_view kKeyName = "lockstep";
constexpr char kCipher[] = "TLS_AES_128_GCM_SHA256";
constexpr std::array<unsigned char, 2> kCipherId = {0x13, 0x01};

/// Bytes encrypted and decrypted at a time, so that OpenSSL's buffers stay small.
constexpr size_t kPieceBytes = 1 << 16;

struct Free {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL_SESSION* session) const { ::SSL_SESSION_free(session); }
};
using Context = std::unique_ptr<SSL_CTX, Free>;

[[noreturn]] void fail(const char* doing) {
  const char* reason = ::ERR_reason_error_string(::ERR_peek_last_error());
  throw Error(ErrorCode::kInternal,
              fmt::format("TLS: {}: {}", doing, reason == nullptr ? "no reason given" : reason));
}

void must(bool done, const char* doing) {
  if (!done) fail(doing);
}

/// The key of a connection in the form that OpenSSL takes: a session that never existed. Null: out
/// of memory.
SSL_SESSION* session_of(SSL* ssl) {
  const auto* key = static_cast<const Digest*>(::SSL_get_ex_data(ssl, 0));
  std::unique_ptr<SSL_SESSION, Free> session(::SSL_SESSION_new());
  const SSL_CIPHER* cipher = ::SSL_CIPHER_find(ssl, kCipherId.data());
  const bool made = session && cipher != nullptr &&
                    ::SSL_SESSION_set1_master_key(session.get(), key->data(), key->size()) == 1 &&
                    ::SSL_SESSION_set_cipher(session.get(), cipher) == 1 &&
                    ::SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  return made ? session.release() : nullptr;
}

int give_key(SSL* ssl, const EVP_MD*, const unsigned char** name, size_t* size,
             SSL_SESSION** session) {
  *name = reinterpret_cast<const unsigned char*>(kKeyName.data());
  *size = kKeyName.size();
  *session = session_of(ssl);
  return *session != nullptr ? 1 : 0;
}

int find_key(SSL* ssl, const unsigned char* name, size_t size, SSL_SESSION** session) {
  const bool known = std::string_view(reinterpret_cast<const char*>(name), size) == kKeyName;
  *session = known ? session_of(ssl) : nullptr;
  return !known || *session != nullptr ? 1 : 0;
}

Context make_context(TlsSession::Side side) {
  Context context(::SSL_CTX_new(::TLS_method()));
  must(context != nullptr, "begin");
  SSL_CTX* const raw = context.get();
  must(::SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION) == 1 &&
           ::SSL_CTX_set_max_proto_version(raw, TLS1_3_VERSION) == 1,
       "choose version 1.3");
  must(::SSL_CTX_set_ciphersuites(raw, kCipher) == 1, "choose the cipher");
  must(::SSL_CTX_set1_groups_list(raw, "X25519:P-256") == 1, "choose the groups");
  ::SSL_CTX_set_options(raw, SSL_OP_NO_TICKET);
  ::SSL_CTX_clear_options(raw, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  must(::SSL_CTX_set_num_tickets(raw, 0) == 1, "leave out tickets");
  ::SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  if (side == TlsSession::Side::kClient) {
    // A server without the key could show a certificate instead: none is trusted.
    ::SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
    ::SSL_CTX_set_psk_use_session_callback(raw, give_key);
  } else {
    ::SSL_CTX_set_psk_find_session_callback(raw, find_key);
  }
  return context;
}

SSL_CTX* context_of(TlsSession::Side side) {
  static const Context client = make_context(TlsSession::Side::kClient);
  static const Context server = make_context(TlsSession::Side::kServer);
  return side == TlsSession::Side::kClient ? client.get() : server.get();
}

/// The cause of a failed handshake is the oldest error; later ones are its consequences.
[[noreturn]] void refuse_handshake(const std::string& peer) {
  const unsigned long failure = ::ERR_peek_error();
  const int reason = ERR_GET_REASON(failure);
  ::ERR_clear_error();
  if (reason == SSL_R_BINDER_DOES_NOT_VERIFY || reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER)
    throw WrongSecret(peer);
  const char* text = ::ERR_reason_error_string(failure);
  throw Error(ErrorCode::kMismatch, fmt::format("{}: TLS cannot be set up: {}", peer,
                                                text == nullptr ? "no reason given" : text));
}

}  // namespace

class TlsSession::Impl {
 public:
  Impl(Side side, const Digest& key)
      : key_(key), ssl_(::SSL_new(context_of(side)), &::SSL_free), in_(::BIO_new(::BIO_s_mem())) {
    BIO* out = ::BIO_new(::BIO_s_mem());
    if (ssl_ == nullptr || in_ == nullptr || out == nullptr) {
      ::BIO_free(in_);
      ::BIO_free(out);
      fail("begin a session");
    }
    out_ = out;
    ::SSL_set_bio(ssl_.get(), in_, out_);  // which owns them now
    ::SSL_set_ex_data(ssl_.get(), 0, &key_);
    if (side == Side::kClient) {
      ::SSL_set_connect_state(ssl_.get());
    } else {
      ::SSL_set_accept_state(ssl_.get());
    }
  }

  SSL* ssl() const { return ssl_.get(); }

  void take_in(std::string_view bytes) {
    const int size = static_cast<int>(bytes.size());
    must(size == 0 || ::BIO_write(in_, bytes.data(), size) == size, "take bytes");
  }
  void append_output(std::string* bytes) {
    const size_t size = ::BIO_ctrl_pending(out_);
    if (size == 0) return;
    const size_t begin = bytes->size();
    bytes->resize(begin + size);
    must(::BIO_read(out_, bytes->data() + begin, static_cast<int>(size)) == static_cast<int>(size),
         "hand out bytes");
  }

  /// OpenSSL has the key by now, or never will.
  void forget_key() { ::OPENSSL_cleanse(key_.data(), key_.size()); }

 private:
  Digest key_;
  std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_;
  BIO* in_;
  BIO* out_ = nullptr;
};

TlsSession::TlsSession(Side side, const Digest& key, std::string peer)
    : impl_(std::make_unique<Impl>(side, key)), peer_(std::move(peer)) {
  shake_hands();
}

TlsSession::~TlsSession() = default;

/// Continues the handshake as far as the received bytes allow.
void TlsSession::shake_hands() {
  ::ERR_clear_error();  // from earlier calls in this thread
  const int done = ::SSL_do_handshake(impl_->ssl());
  if (done == 1) {
    impl_->forget_key();
    // Without the key the handshake cannot succeed; this makes sure.
    if (::SSL_session_reused(impl_->ssl()) != 1) throw WrongSecret(peer_);
    established_ = true;
  } else if (::SSL_get_error(impl_->ssl(), done) != SSL_ERROR_WANT_READ) {
    refuse_handshake(peer_);
  } else if (handshake_bytes_ > kMaxHandshakeBytes) {
    throw Error(ErrorCode::kMismatch,
                fmt::format("{} sent {} bytes and has not proved this job's secret", peer_,
                            handshake_bytes_));
  }
}

std::string TlsSession::open(std::string_view sealed) {
  std::string plain;
  do {
    const auto piece = sealed.substr(0, kPieceBytes);
    sealed.remove_prefix(piece.size());
    impl_->take_in(piece);
    if (!established_) {
      handshake_bytes_ += piece.size();
      shake_hands();
      if (!established_) continue;
    }
    ::ERR_clear_error();
    std::array<char, SSL3_RT_MAX_PLAIN_LENGTH> buffer;
    size_t size = 0;
    while (::SSL_read_ex(impl_->ssl(), buffer.data(), buffer.size(), &size) == 1)
      plain.append(buffer.data(), size);
    const int why = ::SSL_get_error(impl_->ssl(), 0);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_ZERO_RETURN) continue;
    const char* text = ::ERR_reason_error_string(::ERR_peek_error());
    throw Error(ErrorCode::kCorrupt, fmt::format("{}: TLS is broken: {}", peer_,
                                                 text == nullptr ? "no reason given" : text));
  } while (!sealed.empty());
  return plain;
}

std::string TlsSession::seal(std::string_view plain) {
  std::string sealed;
  sealed.reserve(plain.size() + plain.size() / 512 + 64);
  ::ERR_clear_error();
  while (!plain.empty()) {
    const auto piece = plain.substr(0, kPieceBytes);
    size_t size = 0;
    must(::SSL_write_ex(impl_->ssl(), piece.data(), piece.size(), &size) == 1, "seal bytes");
    plain.remove_prefix(size);
    impl_->append_output(&sealed);
  }
  return sealed;
}

std::string TlsSession::take_output() {
  std::string bytes;
  impl_->append_output(&bytes);
  return bytes;
}

}  // namespace lockstep::inline internal
