// The server of torch's store over real sockets, with the bytes that a client of PyTorch sends.

#include "lockstep/store/torch/torch_server.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/descriptors.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "lockstep/store/torch/client_origin.h"
#include "lockstep/store/torch/torch_protocol.h"
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
  explicit RawClient(int port, const std::string& hello = torch_hello(),
                     const std::string& host = "127.0.0.1")
      : fd_(tcp_connect({host, port}, soon())) {
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
  /// False if the server closes the connection before it has carried out `request`.
  bool lives(const std::string& request) {
    try {
      say(request);
      ping();
    } catch (const Error&) {
      return false;
    }
    return true;
  }
  /// Sends `bytes` until the server closes the connection. False if it takes half of the most that
  /// a request may have.
  bool closed_while_sending(const std::string& bytes) {
    try {
      for (size_t sent = 0; sent < kMaxTorchRequestBytes / 2; sent += bytes.size()) say(bytes);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kPeerLost;
    }
    return false;
  }
  /// Takes what comes until the server closes the connection. False if all of `size` bytes come.
  bool closed_while_hearing(size_t size) {
    std::string bytes(1 << 16, '?');
    try {
      while (size > 0)
        size -= recv_some(fd_.get(), bytes.data(), std::min(size, bytes.size()), soon(), "server");
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

TorchLimits few_bytes() {
  TorchLimits limits;
  limits.unfinished_bytes = 1 << 20;
  return limits;
}

TEST(TorchServer, OfUnfinishedRequestsTheLargestIsDropped) {
  TorchStoreServer server(tcp_listen("127.0.0.1", 0), few_bytes());
  RawClient honest(server.port());
  const std::string request = op(1) + sized("/k") + sized(std::string(1 << 17, 'v'));
  honest.say(request.substr(0, 1 << 16));
  RawClient waits(server.port());
  waits.say(op(6) + counted({"/k"}));
  for (int i = 0; i < 8; ++i) {
    RawClient endless(server.port());
    endless.say(op(11) + raw(uint64_t{100'000}));
    EXPECT_TRUE(endless.closed_while_sending(sized("/e") + sized(std::string(100'000, 'e'))));
  }
  honest.say(request.substr(1 << 16));
  EXPECT_EQ(waits.hear(1), std::string(1, '\0'));
  EXPECT_EQ(waits.get("/k").size(), 1U << 17);
}

TEST(TorchServer, AwaitedKeysCountAsUnfinished) {
  TorchStoreServer server(tcp_listen("127.0.0.1", 0), few_bytes());
  RawClient honest(server.port());
  honest.say(op(6) + counted({"/k"}));
  std::vector<std::string> keys;
  for (int i = 0; i < 64; ++i) keys.push_back(std::string(8000, 'a') + std::to_string(i));
  constexpr size_t kMany = 3;  // for one there is room
  std::vector<std::unique_ptr<RawClient>> many;
  for (size_t i = 0; i < kMany; ++i) {
    many.push_back(std::make_unique<RawClient>(server.port()));
    many.back()->lives(op(6) + counted(keys));
  }
  std::erase_if(many, [](const auto& each) { return !each->lives(""); });
  EXPECT_GE(many.size(), 1U) << "only those that are too many are dropped";
  EXPECT_LT(many.size(), kMany);
  RawClient sets(server.port());
  sets.set("/k", "");
  for (const auto& key : keys) sets.set(key, "");
  EXPECT_EQ(honest.hear(1), std::string(1, '\0'));
  for (const auto& each : many) EXPECT_EQ(each->hear(1), std::string(1, '\0'));
}

TEST(TorchServer, WhoTakesNoReplyDelaysOthersForAWhileOnly) {
  TorchLimits limits;
  limits.untaken_bytes = 16 << 20;
  limits.taking = 1s;
  TorchStoreServer server(tcp_listen("127.0.0.1", 0), limits);
  RawClient honest(server.port());
  honest.set("/big", std::string(8 << 20, 'x'));
  honest.set("/small", "s");
  honest.ping();
  constexpr size_t kReply = 7 * (8 + (8 << 20));
  for (int i = 0; i < 2; ++i) {
    RawClient deaf(server.port());
    deaf.say(op(10) + counted(std::vector<std::string>(7, "/big")));
    auto took = 0ns;
    const Deadline end = soon();
    while (took < limits.taking / 2 && !end.passed()) {  // until the delay has been met
      const auto begin = std::chrono::steady_clock::now();
      ASSERT_EQ(honest.get("/small"), "s");
      took = std::chrono::steady_clock::now() - begin;
    }
    EXPECT_TRUE(deaf.closed_while_hearing(kReply));
  }
  EXPECT_EQ(honest.get("/small"), "s");
}

TEST(TorchServer, WhoComesWhileNothingIsReadIsNotDroppedForIt) {
  TorchLimits limits;
  limits.untaken_bytes = 16 << 20;
  limits.taking = 3s;
  limits.greeting = 1s;
  TorchStoreServer server(tcp_listen("127.0.0.1", 0), limits);
  RawClient honest(server.port());
  honest.set("/big", std::string(8 << 20, 'x'));
  honest.set("/small", "s");
  honest.ping();
  RawClient deaf(server.port());
  deaf.say(op(10) + counted(std::vector<std::string>(7, "/big")));
  std::vector<std::unique_ptr<RawClient>> late;
  for (int i = 0; i < 15; ++i) {  // some of them come in the first second of the three
    std::this_thread::sleep_for(100ms);
    late.push_back(std::make_unique<RawClient>(server.port()));
  }
  for (const auto& each : late) EXPECT_EQ(each->get("/small"), "s");
}

TEST(TorchServer, WhoDoesNotGreetIsDroppedAndWhoDidMayBeSilent) {
  TorchLimits limits;
  limits.greeting = 2s;  // long enough for a greeting on a busy machine
  TorchStoreServer server(tcp_listen("127.0.0.1", 0), limits);
  RawClient greeted(server.port());
  RawClient old(server.port(), "");  // before PyTorch 2.1 the first request is the greeting
  old.say(op(3) + sized("init/") + raw(int64_t{1}));
  EXPECT_EQ(old.hear(8), raw(int64_t{1}));
  raise_soft_descriptor_limit();  // both ends of each connection are this process
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(std::make_unique<RawClient>(server.port(), ""));
  }
  RawClient half(server.port(), torch_hello().substr(0, 3));
  RawClient meanwhile(server.port());
  meanwhile.set("/k", "v");
  EXPECT_EQ(meanwhile.get("/k"), "v");
  ::testing::internal::CaptureStderr();
  for (const auto& each : silent) EXPECT_TRUE(each->closed_by_server());
  EXPECT_TRUE(half.closed_by_server());
  EXPECT_EQ(greeted.get("/k"), "v");
  old.say(op(2) + sized("/k"));
  EXPECT_EQ(old.hear(9), sized("v"));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

/// IPv4's loopback, and IPv6's if this host has one.
std::vector<std::string> loopbacks() {
  std::vector<std::string> hosts = {"127.0.0.1"};
  try {
    tcp_listen("::1", 0);
    hosts.emplace_back("::1");
  } catch (const Error&) {
  }
  return hosts;
}

TEST(TorchServer, AClientHasAnOriginUntilItCloses) {
  for (const std::string& host : loopbacks()) {
    const UniqueFd listener = tcp_listen(host, 0);
    UniqueFd client = tcp_connect({host, local_port(listener.get())}, soon());
    const UniqueFd fd = tcp_accept(listener.get(), soon());
    EXPECT_TRUE(is_of_this_host(fd.get())) << host;
    EXPECT_EQ(client_origin(fd.get()), ClientOrigin::kOwn) << host;
    client.reset();
    EXPECT_EQ(client_origin(fd.get()), ClientOrigin::kGone) << host;
  }
}

/// The child's exit status: 1 if the server at `host` takes it as a client of another user.
int status_of_other_user(const std::string& host, int port) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kOther = 12345;
    if (::setresuid(kOther, kOther, kOther) != 0) ::_exit(2);
    bool taken = false;
    try {
      taken = RawClient(port, torch_hello(), host).lives("");
    } catch (const Error&) {  // not even its greeting
    }
    ::_exit(taken ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(TorchServer, OnOneHostAnotherUserIsNotTakenAsRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "root may become another user; scripts/test.sh sees to it";
  for (const std::string& host : loopbacks()) {
    TorchStoreServer server(tcp_listen(host, 0));
    EXPECT_EQ(status_of_other_user(host, server.port()), 0) << host;
    EXPECT_TRUE(RawClient(server.port(), torch_hello(), host).lives(""))
        << host << ": this user's is taken";
  }
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
