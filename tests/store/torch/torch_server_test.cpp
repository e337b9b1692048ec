// The server of torch's store over real sockets, with the bytes that a client of PyTorch sends.

#include "lockstep/store/torch/torch_server.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "tests/store/helpers.h"
#include "tests/store/torch/torch_bytes.h"
#include "tests/support/held_port.h"

namespace lockstep {
namespace {

using testing::counted;
using testing::HeldPort;
using testing::op;
using testing::raw;
using testing::run_threads;
using testing::sized;
using testing::soon;
using testing::torch_hello;

/// A client that says what it is told to.
class RawClient {
 public:
  explicit RawClient(int port, const std::string& hello = torch_hello())
      : fd_(tcp_connect({"127.0.0.1", port}, soon())) {
    say(hello);
  }
  void say(const std::string& bytes) {
    send_all(fd_.get(), bytes.data(), bytes.size(), soon(), "server");
  }
  std::string hear(size_t size) {
    std::string bytes(size, '?');
    recv_all(fd_.get(), bytes.data(), size, soon(), "server");
    return bytes;
  }
  void set(const std::string& key, const std::string& value) {
    say(op(1) + sized(key) + sized(value));
  }
  std::string get(const std::string& key) {
    say(op(3) + sized(key));
    uint64_t size = 0;
    const std::string bytes = hear(sizeof size);
    std::memcpy(&size, bytes.data(), sizeof size);
    return hear(size);
  }
  /// All requests before this one have been carried out.
  void ping() {
    say(op(13) + raw(uint32_t{7}));
    EXPECT_EQ(hear(4), raw(uint32_t{7}));
  }
  bool closed_by_server() {
    char byte = 0;
    try {
      recv_all(fd_.get(), &byte, 1, soon(), "server");
    } catch (const Error& error) {
      return error.code() == ErrorCode::kPeerLost;
    }
    return false;
  }

 private:
  UniqueFd fd_;
};

TEST(TorchServer, ClientsSeeEachOthersValues) {
  TorchStoreServer server(tcp_listen("127.0.0.1", 0));
  RawClient one(server.port());
  RawClient two(server.port());
  one.set("/k", "v");
  one.ping();
  EXPECT_EQ(two.get("/k"), "v");
  RawClient old(server.port(), "");  // PyTorch 1.13: add, then get in the older numbering
  old.say(op(3) + sized("init/") + raw(int64_t{1}));
  EXPECT_EQ(old.hear(8), raw(int64_t{1}));
  old.say(op(2) + sized("/k"));
  EXPECT_EQ(old.hear(9), sized("v"));
}

TEST(TorchServer, AWaitIsEndedByAnotherClientOrByItself) {
  TorchStoreServer server(tcp_listen("127.0.0.1", 0));
  RawClient waits(server.port());
  RawClient sets(server.port());
  waits.say(op(6) + counted({"/a", "/b"}));
  waits.ping();
  sets.set("/b", "");
  sets.set("/a", "");
  EXPECT_EQ(waits.hear(1), std::string(1, '\0'));
  waits.say(op(6) + counted({"/never"}));
  waits.say(op(12));
  EXPECT_EQ(waits.hear(1), "\1");
}

/// More than a socket holds: the rest waits, and comes in order.
TEST(TorchServer, LargeValuesComeWhole) {
  TorchStoreServer server(tcp_listen("127.0.0.1", 0));
  RawClient client(server.port());
  const std::string big(8 << 20, 'x');
  client.set("/big", big);
  for (int i = 0; i < 4; ++i) client.say(op(3) + sized("/big"));
  client.say(op(13) + raw(uint32_t{5}));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client.hear(8 + big.size()), sized(big));
  EXPECT_EQ(client.hear(4), raw(uint32_t{5}));
}

TEST(TorchServer, OnlyTheClientThatBreaksTheRulesIsDisconnected) {
  TorchStoreServer server(tcp_listen("127.0.0.1", 0));
  RawClient good(server.port());
  good.set("/word", "w");
  good.ping();
  RawClient http(server.port(), "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(http.closed_by_server());
  RawClient adds(server.port());
  adds.say(op(4) + sized("/word") + raw(int64_t{1}));
  EXPECT_TRUE(adds.closed_by_server());
  EXPECT_EQ(good.get("/word"), "w");
}

TEST(TorchServer, ManyClientsCountTogether) {
  TorchStoreServer server(tcp_listen("127.0.0.1", 0));
  constexpr int kClients = 8;
  constexpr int kTimes = 200;
  run_threads(kClients, [&](int) {
    RawClient client(server.port());
    for (int i = 0; i < kTimes; ++i) {
      client.say(op(4) + sized("/n") + raw(int64_t{1}));
      client.hear(8);
    }
  });
  EXPECT_EQ(RawClient(server.port()).get("/n"), std::to_string(kClients * kTimes));
}

TEST(TorchServer, ItsEndClosesItsConnections) {
  const HeldPort port;
  auto server = std::make_unique<TorchStoreServer>(tcp_listen("127.0.0.1", port.number()));
  RawClient client(server->port());
  client.ping();
  server.reset();
  EXPECT_TRUE(client.closed_by_server());
  EXPECT_FALSE(somebody_listens({"127.0.0.1", port.number()}, soon()));
}

}  // namespace
}  // namespace lockstep
