// The store over TCP if the job's wire is TLS. It also passes the tests of every store: see
// store_kinds().

#include <gtest/gtest.h>

#include <future>

#include "lockstep/base/auth.h"
#include "lockstep/base/literals.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "tests/store/helpers.h"
#include "tests/support/relay.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::mentions;
using testing::Relay;
using testing::run_threads;
using testing::soon;

TcpStoreServerOptions served_by(Wire wire, std::chrono::milliseconds handshake_limit = 30s) {
  TcpStoreServerOptions options;
  options.secret = "secret";
  options.handshake_limit = handshake_limit;
  options.wire = wire;
  return options;
}

/// By name, so that the way is TCP; a numeric address would lead to the shortcut.
std::shared_ptr<Store> connect(int port, Wire wire, const std::string& secret = "secret") {
  return connect_tcp_store({"localhost", port}, secret, soon(), wire);
}

void send_bytes(const UniqueFd& fd, std::string_view bytes) {
  send_all(fd.get(), bytes.data(), bytes.size(), soon(), "peer");
}

std::string hello_bytes(Wire wire) {
  const Hello hello = make_hello(wire);
  return {reinterpret_cast<const char*>(&hello), sizeof hello};
}

void expect_dropped(const UniqueFd& fd) {
  const auto error = error_of([&] {
    std::string bytes(1 << 20, ' ');
    recv_all(fd.get(), bytes.data(), bytes.size(), soon(), "server");
  });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost) << error.what();
}

/// The bytes that an eavesdropper sees of a client that sets a key and reads it.
std::string overheard(Wire wire) {
  const TcpStoreServer server(served_by(wire));
  const Relay relay({"127.0.0.1", server.port()});
  const auto store = connect(relay.port(), wire);
  store->set("name-of-the-key", "text-of-the-value", soon());
  EXPECT_EQ(store->get("name-of-the-key", soon()), "text-of-the-value");
  return relay.seen();
}

bool is_in(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TlsStore, NobodyOnTheWayReadsKeysAndValues) {
  const std::string open = overheard(Wire::kPlain);
  EXPECT_TRUE(is_in(open, "name-of-the-key") && is_in(open, "text-of-the-value"));
  const std::string closed = overheard(Wire::kTls);
  EXPECT_GT(closed.size(), open.size());
  EXPECT_FALSE(is_in(closed, "name-of-the-key") || is_in(closed, "text-of-the-value"));
}

TEST(TlsStore, LargeValuesFromSeveralThreadsOfOneClient) {
  const TcpStoreServer server(served_by(Wire::kTls));
  const auto store = connect(server.port(), Wire::kTls);
  run_threads(4, [&](int index) {
    const std::string key = "key" + std::to_string(index);
    const std::string value(3 << 20, static_cast<char>('a' + index));
    store->set(key, value, soon());
    EXPECT_TRUE(store->get(key, soon()) == value) << index;
  });
}

TEST(TlsStore, AWrongSecretIsRefusedAndTheRightOneStillCounts) {
  const TcpStoreServer server(served_by(Wire::kTls));
  EXPECT_THROW(connect(server.port(), Wire::kTls, "another"), WrongSecret);
  connect(server.port(), Wire::kTls)->set("k", "v", soon());
}

TEST(TlsStore, BothEndsMustMeanTheSameWire) {
  for (const Wire wire : {Wire::kPlain, Wire::kTls}) {
    const Wire other = wire == Wire::kTls ? Wire::kPlain : Wire::kTls;
    const TcpStoreServer server(served_by(wire));
    for (const char* host : {"localhost", "127.0.0.1"}) {  // TCP, shortcut
      const auto error = error_of([&] {
        connect_tcp_store({host, server.port()}, "secret", soon(), other);
      });
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_TRUE(mentions(error, "set LOCKSTEP_TLS=1")) << error.what();
      EXPECT_TRUE(mentions(error, other == Wire::kTls ? "does not use TLS" : "uses TLS only"))
          << error.what();
    }
    connect(server.port(), wire)->set("k", "v", soon());
  }
}

TEST(TlsStore, NeedsASecretEvenOnLoopback) {
  TcpStoreServerOptions options;
  options.wire = Wire::kTls;
  for (const auto& error : {error_of([&] { TcpStoreServer server(options); }),
                            error_of([&] { connect(1, Wire::kTls, ""); })}) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(mentions(error, "LOCKSTEP_SECRET")) << error.what();
  }
}

TEST(TlsStore, GarbageAfterTheHelloIsDropped) {
  const TcpStoreServer server(served_by(Wire::kTls));
  const auto store = connect(server.port(), Wire::kTls);
  for (const std::string& bytes :
       {std::string(100, '\xff'), std::string(100, '\0'),
        std::string("\x16\x03\x01\x40\x00", 5) + std::string(8000, 'x')}) {
    const UniqueFd fd = tcp_connect({"127.0.0.1", server.port()}, soon());
    send_bytes(fd, hello_bytes(Wire::kTls) + bytes);
    expect_dropped(fd);
  }
  store->set("k", "v", soon());
}

TEST(TlsStore, AClientThatStopsInTheMiddleIsDroppedInTime) {
  // Long enough on a busy machine for the client that does prove itself.
  const TcpStoreServer server(served_by(Wire::kTls, 1s));
  const UniqueFd silent = tcp_connect({"127.0.0.1", server.port()}, soon());
  send_bytes(silent, hello_bytes(Wire::kTls));
  expect_dropped(silent);
}

TEST(TlsStore, AServerThatStopsInTheMiddleIsATimeout) {
  const UniqueFd listener = tcp_listen("127.0.0.1", 0);
  auto half = std::async(std::launch::async, [&] {
    UniqueFd fd = tcp_accept(listener.get(), soon());
    send_bytes(fd, hello_bytes(Wire::kTls));
    return fd;
  });
  const Endpoint place{"127.0.0.1", local_port(listener.get())};
  const auto error =
      error_of([&] { connect_tcp_store(place, "secret", Deadline::after(300ms), Wire::kTls); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, to_string(place))) << error.what();
}

}  // namespace
}  // namespace lockstep
