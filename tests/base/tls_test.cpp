#include "lockstep/base/tls.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

#include "lockstep/error.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using Side = TlsSession::Side;

const Digest kKey = hmac_sha256("secret", "key");

/// Both ends of a connection, and the wire between them.
struct Ends {
  explicit Ends(const Digest& clients_key = kKey) : client(Side::kClient, clients_key, "server") {}

  /// Transfers the handshake in pieces of `piece` bytes, until neither end has output.
  void shake_hands(size_t piece = 1 << 20) {
    for (bool said = true; said;) {
      said = carry(client.take_output(), &server, piece);
      said = carry(server.take_output(), &client, piece) || said;
    }
  }
  static bool carry(std::string_view bytes, TlsSession* to, size_t piece) {
    const bool any = !bytes.empty();
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
      EXPECT_EQ(to->open(bytes.substr(0, piece)), "");
    return any;
  }

  TlsSession client;
  TlsSession server{Side::kServer, kKey, "client"};
};

bool says(const Error& error, const std::string& part) {
  return std::string(error.what()).find(part) != std::string::npos;
}

TEST(Tls, CarriesBytesBothWaysInAnyPieces) {
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1} << 20}) {
    Ends ends;
    ends.shake_hands(piece);
    ASSERT_TRUE(ends.client.established() && ends.server.established()) << piece;
    for (const auto& [from, to] :
         {std::pair{&ends.client, &ends.server}, std::pair{&ends.server, &ends.client}}) {
      const std::string sealed = from->seal("a question");
      EXPECT_EQ(sealed.find("question"), std::string::npos);
      std::string plain;
      for (size_t at = 0; at < sealed.size(); at += piece)
        plain += to->open(std::string_view(sealed).substr(at, piece));
      EXPECT_EQ(plain, "a question");
    }
  }
}

TEST(Tls, CarriesLargeValuesWithLittleOnTop) {
  Ends ends;
  ends.shake_hands();
  std::string value(5 << 20, ' ');
  for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * i >> 7);
  const std::string sealed = ends.client.seal(value);
  EXPECT_LT(sealed.size(), value.size() + value.size() / 500);
  EXPECT_EQ(ends.server.open(sealed), value);
  EXPECT_EQ(ends.client.seal(""), "");
}

TEST(Tls, FirstBytesMayComeWithTheHandshakesLast) {
  Ends ends;
  ends.server.open(ends.client.take_output());
  ends.client.open(ends.server.take_output());
  ASSERT_TRUE(ends.client.established() && !ends.server.established());
  const std::string last = ends.client.take_output();
  EXPECT_EQ(ends.server.open(last + ends.client.seal("first")), "first");
}

TEST(Tls, AnotherKeyIsRefusedAtBothEndsAndNamed) {
  Ends ends(hmac_sha256("other", "key"));
  const std::string hello = ends.client.take_output();
  const auto at_server = error_of([&] { ends.server.open(hello); });
  EXPECT_EQ(at_server.code(), ErrorCode::kMismatch);
  EXPECT_TRUE(says(at_server, "client does not know this job's secret")) << at_server.what();
  const auto at_client = error_of([&] { ends.client.open(ends.server.take_output()); });
  EXPECT_EQ(at_client.code(), ErrorCode::kMismatch);
  EXPECT_TRUE(says(at_client, "server does not know this job's secret")) << at_client.what();
  EXPECT_FALSE(ends.client.established() || ends.server.established());
}

TEST(Tls, WhatIsNoTlsIsRefused) {
  const std::string promise("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03", 11);  // of 16 kB
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(64, '\xff'),
                                   promise + std::string(1 << 20, 'x')}) {
    Ends ends;
    EXPECT_EQ(error_of([&] { ends.server.open(bytes); }).code(), ErrorCode::kMismatch);
    EXPECT_EQ(error_of([&] { ends.client.open(bytes); }).code(), ErrorCode::kMismatch);
  }
}

TEST(Tls, OneThatNeverProvesItselfMaySendLittle) {
  const std::string promise("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03", 11);
  Ends ends;
  ends.server.open(promise);
  const std::string piece(1000, 'x');
  const auto error = error_of([&] {
    for (int i = 0; i < 5; ++i) ends.server.open(piece);
  });
  EXPECT_TRUE(says(error, "4011 bytes") || says(error, "5011 bytes")) << error.what();
}

TEST(Tls, BytesChangedLeftOutOrBroughtAgainAreNoticed) {
  for (const int fault : {0, 1, 2}) {
    Ends ends;
    ends.shake_hands();
    std::string one = ends.client.seal("one");
    std::string two = ends.client.seal("two");
    if (fault == 0) one.back() = static_cast<char>(one.back() ^ 1);
    if (fault == 1) one.clear();
    if (fault == 2) two = one;
    const auto error = error_of([&] { ends.server.open(one + two); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << fault << error.what();
  }
}

/// A server or client of another program: it does not have the key.
class Stranger {
 public:
  explicit Stranger(Side side)
      : context_(::SSL_CTX_new(::TLS_method()), &::SSL_CTX_free),
        key_(::EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), &::EVP_PKEY_free),
        certificate_(::X509_new(), &::X509_free) {
    ::X509_set_version(certificate_.get(), X509_VERSION_3);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(certificate_.get()), 1);
    ::X509_gmtime_adj(::X509_getm_notBefore(certificate_.get()), 0);
    ::X509_gmtime_adj(::X509_getm_notAfter(certificate_.get()), 3600);
    ::X509_set_pubkey(certificate_.get(), key_.get());
    EXPECT_GT(::X509_sign(certificate_.get(), key_.get(), ::EVP_sha256()), 0);
    EXPECT_EQ(::SSL_CTX_use_certificate(context_.get(), certificate_.get()), 1);
    EXPECT_EQ(::SSL_CTX_use_PrivateKey(context_.get(), key_.get()), 1);
    ssl_.reset(::SSL_new(context_.get()));
    ::SSL_set_bio(ssl_.get(), ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
    if (side == Side::kClient) {
      ::SSL_set_connect_state(ssl_.get());
    } else {
      ::SSL_set_accept_state(ssl_.get());
    }
  }

  /// Returns its answer.
  std::string hear(const std::string& bytes) {
    ::BIO_write(::SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    ::SSL_do_handshake(ssl_.get());
    std::string answer(::BIO_ctrl_pending(::SSL_get_wbio(ssl_.get())), ' ');
    EXPECT_FALSE(answer.empty());
    ::BIO_read(::SSL_get_wbio(ssl_.get()), answer.data(), static_cast<int>(answer.size()));
    return answer;
  }

 private:
  std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context_;
  std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key_;
  std::unique_ptr<X509, decltype(&::X509_free)> certificate_;
  std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_{nullptr, &::SSL_free};
};

TEST(Tls, AServerThatShowsACertificateInsteadIsNotTrusted) {
  Ends ends;
  Stranger stranger(Side::kServer);
  const auto error = error_of([&] { ends.client.open(stranger.hear(ends.client.take_output())); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_FALSE(ends.client.established());
}

TEST(Tls, AClientWithoutTheKeyIsRefused) {
  Ends ends;
  Stranger stranger(Side::kClient);
  const auto error = error_of([&] { ends.server.open(stranger.hear("")); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_FALSE(ends.server.take_output().empty());  // it receives the reason
}

}  // namespace
}  // namespace lockstep
