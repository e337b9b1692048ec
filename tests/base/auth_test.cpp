#include "lockstep/base/auth.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <future>
#include <optional>
#include <set>

#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "tests/support/auth_server.h"

namespace lockstep {
namespace {

struct Pair {
  Pair() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) throw io_error("pair");
    client.reset(fds[0]);
    server.reset(fds[1]);
  }
  UniqueFd client;
  UniqueFd server;
};

/// Runs the server's half beside `client` and returns its error, if any.
std::optional<Error> serve(Pair& pair, const std::string& secret, const std::string& purpose,
                           const std::function<void()>& client) {
  auto server = std::async(std::launch::async, [&]() -> std::optional<Error> {
    try {
      testing::authenticate_server(pair.server.get(), secret, purpose, Deadline::after(10s));
      return std::nullopt;
    } catch (const Error& error) {
      pair.server.reset();
      return error;
    }
  });
  client();
  return server.get();
}

ErrorCode client_code(Pair& pair, const std::string& secret, const std::string& purpose) {
  try {
    authenticate_client(pair.client.get(), secret, purpose, Deadline::after(10s));
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "the client was let in";
  return ErrorCode::kInternal;
}

// RFC 4231, test cases 1 and 2.
TEST(Auth, HmacMatchesPublishedVectors) {
  EXPECT_EQ(hex_digits(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex_digits(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Auth, SecretsAreHexAndDiffer) {
  std::set<std::string> secrets;
  for (int i = 0; i < 8; ++i) {
    const std::string secret = make_job_secret();
    EXPECT_EQ(secret.size(), 64u);
    EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
    secrets.insert(secret);
  }
  EXPECT_EQ(secrets.size(), 8u);
}

TEST(Auth, EqualDigestsComparesEveryByte) {
  const Digest a = hmac_sha256("k", "m");
  Digest b = a;
  EXPECT_TRUE(equal_digests(a, b));
  b[31] ^= 1;
  EXPECT_FALSE(equal_digests(a, b));
}

TEST(Auth, ProofDependsOnEverything) {
  const Hello a = make_hello();
  const Hello b = make_hello();
  const Digest proof = make_proof("secret", "store/client", a, b);
  EXPECT_TRUE(equal_digests(proof, make_proof("secret", "store/client", a, b)));
  EXPECT_FALSE(equal_digests(proof, make_proof("other", "store/client", a, b)));
  EXPECT_FALSE(equal_digests(proof, make_proof("secret", "store/server", a, b)));
  EXPECT_FALSE(equal_digests(proof, make_proof("secret", "store/client", b, a)));
}

TEST(Auth, SameSecretOpensBothEnds) {
  Pair pair;
  const auto failure = serve(pair, "s", "store", [&] {
    authenticate_client(pair.client.get(), "s", "store", Deadline::after(10s));
  });
  EXPECT_FALSE(failure.has_value());
}

TEST(Auth, OtherSecretIsRefusedOnBothEnds) {
  Pair pair;
  const auto failure = serve(pair, "s", "store", [&] {
    EXPECT_THROW(authenticate_client(pair.client.get(), "t", "store", Deadline::after(10s)),
                 WrongSecret);
  });
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->code(), ErrorCode::kMismatch);
}

TEST(Auth, AServerThatEndsInsteadOfAnsweringIsNotOneOfAnotherSecret) {
  Pair pair;
  auto server = std::async(std::launch::async, [&] {
    const Hello hello = make_hello();
    send_all(pair.server.get(), &hello, sizeof hello, Deadline::after(10s), "client");
    char bytes[sizeof(Hello) + sizeof(Digest)];
    recv_all(pair.server.get(), bytes, sizeof bytes, Deadline::after(10s), "client");
    pair.server.reset();
  });
  EXPECT_EQ(client_code(pair, "s", "store"), ErrorCode::kUnavailable);
  server.get();
}

TEST(Auth, ProofForOnePurposeDoesNotOpenAnother) {
  Pair pair;
  const auto failure = serve(
      pair, "s", "comm", [&] { EXPECT_EQ(client_code(pair, "s", "store"), ErrorCode::kMismatch); });
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->code(), ErrorCode::kMismatch);
}

TEST(Auth, ReflectedProofIsRefused) {
  // A stranger that sends the server's own hello and then echoes all input.
  Pair pair;
  const auto failure = serve(pair, "s", "store", [&] {
    Hello hello;
    recv_all(pair.client.get(), &hello, sizeof hello, Deadline::after(10s), "server");
    send_all(pair.client.get(), &hello, sizeof hello, Deadline::after(10s), "server");
    const Digest guess = make_proof("", "store/client", hello, hello);
    send_all(pair.client.get(), guess.data(), guess.size(), Deadline::after(10s), "server");
  });
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->code(), ErrorCode::kMismatch);
}

/// The bytes of a client with `secret`: hello and proof, for a server that greets with `greeting`.
std::string client_bytes(const std::string& secret, std::string_view greeting, Hello* own) {
  Hello theirs;
  std::memcpy(static_cast<void*>(&theirs), greeting.data(), sizeof theirs);
  *own = make_hello();
  const Digest proof = make_proof(secret, "store/client", *own, theirs);
  std::string bytes(reinterpret_cast<const char*>(own), sizeof *own);
  return bytes.append(reinterpret_cast<const char*>(proof.data()), proof.size());
}

TEST(ServerHandshake, TakesAnyPiecesAndLeavesTheRest) {
  for (const size_t piece : {1u, 7u, 63u, 64u, 65u, 200u}) {
    ServerHandshake handshake("s", "store");
    Hello own;
    const std::string stream = client_bytes("s", handshake.greeting(), &own) + "first message";
    size_t at = 0;
    while (!handshake.done()) {
      ASSERT_GT(handshake.wanted(), 0u);
      at += handshake.feed(std::string_view(stream).substr(at, piece), "peer");
    }
    EXPECT_EQ(stream.substr(at), "first message") << piece;
    EXPECT_EQ(handshake.wanted(), 0u);
    Hello server;
    std::memcpy(static_cast<void*>(&server), handshake.greeting().data(), sizeof server);
    const Digest wanted = make_proof("s", "store/server", server, own);
    EXPECT_EQ(std::memcmp(handshake.answer().data(), wanted.data(), wanted.size()), 0);
  }
}

TEST(ServerHandshake, RefusesAStrangerAtItsFirstFourBytes) {
  ServerHandshake handshake("s", "store");
  EXPECT_EQ(handshake.feed("GET", "peer"), 3u);
  EXPECT_THROW(handshake.feed(" ", "peer"), Error);
}

TEST(ServerHandshake, RefusesAWrongProof) {
  ServerHandshake handshake("s", "store");
  Hello own;
  const std::string stream = client_bytes("t", handshake.greeting(), &own);
  EXPECT_EQ(handshake.feed(stream, "peer"), sizeof(Hello));
  EXPECT_THROW(handshake.feed(std::string_view(stream).substr(sizeof(Hello)), "peer"), Error);
  EXPECT_FALSE(handshake.done());
}

TEST(Auth, OtherBuildIsNamed) {
  Hello hello = make_hello();
  hello.build = {};
  std::strncpy(hello.build.data(), "9.9.9/w7/le64", hello.build.size() - 1);
  try {
    check_hello(hello, "10.0.0.1:5");
    FAIL() << "another build was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_NE(std::string(error.what()).find("9.9.9/w7/le64"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("10.0.0.1:5"), std::string::npos) << error.what();
  }
}

TEST(Auth, BuildWithoutTerminatorIsReadWithinItsField) {
  Hello hello = make_hello();
  hello.build.fill('x');
  EXPECT_THROW(check_hello(hello, "peer"), Error);
}

TEST(Auth, ForeignProtocolIsRefused) {
  Hello hello;
  std::memcpy(static_cast<void*>(&hello), "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
  EXPECT_THROW(check_hello(hello, "peer"), Error);
}

TEST(Auth, SilentPeerTimesOut) {
  Pair pair;
  try {
    authenticate_client(pair.client.get(), "s", "store", Deadline::after(20ms));
    FAIL() << "a silent server was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  }
}

}  // namespace
}  // namespace lockstep
