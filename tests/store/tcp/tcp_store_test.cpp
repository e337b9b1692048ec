#include "lockstep/store/tcp/tcp_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <iostream>

#include "lockstep/base/auth.h"
#include "lockstep/base/descriptors.h"
#include "lockstep/base/literals.h"
#include "lockstep/store/tcp/protocol.h"
#include "lockstep/store/tcp/server_connection.h"
#include "lockstep/store/tcp/shortcut.h"
#include "tests/store/helpers.h"
#include "tests/store/tcp/server_process.h"
#include "tests/support/auth_server.h"
#include "tests/support/held_port.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::mentions;
using testing::run_threads;
using testing::ServerProcess;
using testing::soon;

TcpStoreServerOptions with_secret(std::chrono::milliseconds handshake_limit = 30s) {
  TcpStoreServerOptions options;
  options.secret = "secret";
  options.handshake_limit = handshake_limit;
  return options;
}

class TcpStoreTest : public ::testing::Test {
 protected:
  Endpoint endpoint() const { return {"127.0.0.1", server_->port()}; }
  std::shared_ptr<Store> connect(const std::string& secret = "secret") const {
    return connect_tcp_store(endpoint(), secret, soon());
  }
  UniqueFd raw() const { return tcp_connect(endpoint(), soon()); }

  std::unique_ptr<TcpStoreServer> server_ = std::make_unique<TcpStoreServer>(with_secret());
};

void put(const UniqueFd& fd, std::string_view bytes) {
  send_all(fd.get(), bytes.data(), bytes.size(), soon(), "server");
}

/// Waits until the other end closes, and discards its bytes.
void expect_closed(const UniqueFd& fd) {
  const auto error = error_of([&] {
    std::string bytes(1 << 20, ' ');
    recv_all(fd.get(), bytes.data(), bytes.size(), soon(), "server");
  });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost) << error.what();
}

TEST_F(TcpStoreTest, WrongSecretIsRefused) {
  const auto error = error_of([&] { connect("other"); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_TRUE(mentions(error, "secret")) << error.what();
  EXPECT_EQ(error_of([&] { connect(""); }).code(), ErrorCode::kMismatch);
  connect()->set("k", "v", soon());
}

TEST_F(TcpStoreTest, AHostThatTriesAWrongSecretAgainAndAgainIsLoggedOnce) {
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(connect("other"), WrongSecret);
    EXPECT_THROW(connect(""), WrongSecret);
    // Once the right client is served, all earlier refusals are logged; then the next is logged
    // again.
    if (i > 0) connect()->set("k", "v", soon());
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  int lines = 0;
  for (size_t at = 0; (at = log.find("this job's secret", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, 2) << log;
}

TEST_F(TcpStoreTest, ForeignProtocolsAreDroppedAtTheFirstBytes) {
  const auto store = connect();
  for (const std::string_view bytes :
       {std::string_view("GET / HTTP/1.1\r\n\r\n"), std::string_view("\x16\x03\x01\x02\x00\x01", 6),
        std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff", 8)}) {
    const UniqueFd fd = raw();
    put(fd, bytes);
    expect_closed(fd);
  }
  store->set("k", "v", soon());
}

TEST_F(TcpStoreTest, OtherBuildIsDropped) {
  Hello hello = make_hello();
  hello.build.fill('\0');
  std::strncpy(hello.build.data(), "0.0.9", hello.build.size() - 1);
  const UniqueFd fd = raw();
  put(fd, {reinterpret_cast<const char*>(&hello), sizeof hello});
  expect_closed(fd);
}

TEST_F(TcpStoreTest, NonsenseAfterTheHandshakeIsDropped) {
  const auto store = connect();
  for (const std::string_view bytes :
       {std::string_view("\xff\xff\xff\xff", 4), std::string_view("\x03\0\0\0abc", 7)}) {
    const UniqueFd fd = raw();
    authenticate_client(fd.get(), "secret", "store", soon());
    put(fd, bytes);
    expect_closed(fd);
  }
  store->set("k", "v", soon());
}

TEST(TcpStoreServer, SilentStrangersAreDroppedInTime) {
  // Long enough on a busy machine for the client that does prove itself.
  const TcpStoreServer server(with_secret(1s));
  const Endpoint endpoint{"127.0.0.1", server.port()};
  const auto store = connect_tcp_store(endpoint, "secret", soon());
  const UniqueFd silent = tcp_connect(endpoint, soon());
  const UniqueFd half = tcp_connect(endpoint, soon());
  const Hello hello = make_hello();
  put(half, {reinterpret_cast<const char*>(&hello), sizeof hello});
  expect_closed(silent);
  expect_closed(half);
  store->set("k", "v", soon());
}

TEST(TcpStoreServer, NeedsASecretBeyondLoopback) {
  for (const char* host : {"0.0.0.0", ""}) {
    TcpStoreServerOptions options;
    options.host = host;
    const auto error = error_of([&] { TcpStoreServer server(options); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(mentions(error, "secret")) << error.what();
    options.secret = "secret";
    const TcpStoreServer server(options);
    connect_tcp_store({"127.0.0.1", server.port()}, "secret", soon())->set("k", "v", soon());
  }
}

TEST(TcpStoreServer, NeedsNoSecretOnLoopback) {
  const TcpStoreServer server({});
  const auto store = connect_tcp_store({"127.0.0.1", server.port()}, "", soon());
  store->set("k", "v", soon());
  EXPECT_EQ(store->get("k", soon()), "v");
}

TcpStoreServerOptions for_own_user() {
  TcpStoreServerOptions options;
  options.secret = "guessed";
  options.own_user_only = true;
  return options;
}

// Any process of the host can connect over TCP, and can guess a text that only distinguishes jobs.
TEST(TcpStoreServer, WithoutASecretNobodyComesInByTcp) {
  const TcpStoreServer server(for_own_user());
  const auto fd = tcp_connect({"127.0.0.1", server.port()}, soon());
  const auto error = error_of([&] { authenticate_client(fd.get(), "guessed", "store", soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost) << error.what();
  for (const char* host : {"127.0.0.1", "localhost"}) {
    connect_user_store({host, server.port()}, "guessed", soon())->set("k", host, soon());
  }
}

TEST(TcpStoreServer, WithoutASecretAnotherUserDoesNotComeIn) {
  UniqueFd listener = tcp_listen("127.0.0.1", 0);
  const Endpoint place{"127.0.0.1", local_port(listener.get())};
  const TcpStoreServer server(std::move(listener), for_own_user());
  const pid_t child = ::fork();
  if (child == 0) {
    // Only root can become another user; the same user gets a greeting.
    const bool another = ::geteuid() == 0 && ::setresuid(65534, 65534, 65534) == 0;
    const UniqueFd fd = connect_shortcut(place, another ? 0 : ::geteuid());
    std::array<char, 1> byte;
    const bool greeted = fd && ::recv(fd.get(), byte.data(), byte.size(), 0) == 1;
    ::_exit(fd && greeted != another ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(TcpStoreServer, WithoutASecretItsNameMustBeFree) {
  UniqueFd listener = tcp_listen("127.0.0.1", 0);
  const int port = local_port(listener.get());
  const UniqueFd squatter = listen_shortcut(listener.get());
  ASSERT_TRUE(squatter);
  const auto error = error_of([&] { TcpStoreServer server(std::move(listener), for_own_user()); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(mentions(error, std::to_string(port))) << error.what();
}

TEST(TcpStoreClient, WithoutASecretNoServerOfTcpIsTrusted) {
  const UniqueFd listener = tcp_listen("127.0.0.1", 0);
  const Endpoint place{"127.0.0.1", local_port(listener.get())};
  auto greeting = std::async(std::launch::async, [&] {
    const UniqueFd fd = tcp_accept(listener.get(), soon());
    put(fd, "220 mail.example.org");
    std::array<char, 1> byte;
    return ::recv(fd.get(), byte.data(), byte.size(), 0);
  });
  const auto error = error_of([&] { connect_tcp_store(place, "", soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_TRUE(mentions(error, "not a store of this user")) << error.what();
  EXPECT_LE(greeting.get(), 0) << "nothing was said to it";
  const auto mute = error_of([&] { connect_tcp_store(place, "", Deadline::after(50ms)); });
  EXPECT_EQ(mute.code(), ErrorCode::kTimeout);
}

TEST(TcpStoreClient, WithoutASecretAServerThatDiesIsNotTakenForAStranger) {
  const testing::HeldPort held;
  UniqueFd listener = tcp_listen("127.0.0.1", held.number());
  const Endpoint place{"127.0.0.1", local_port(listener.get())};
  auto store = std::async(std::launch::async, [&] { return connect_tcp_store(place, "", soon()); });
  {
    const UniqueFd knock = tcp_accept(listener.get(), soon());
    listener.reset();  // first, so that nobody listens any more when a client sees the end
  }
  std::this_thread::sleep_for(500ms);  // longer than the wait for an ending server
  TcpStoreServerOptions options;
  options.host = place.host;
  options.port = place.port;
  const TcpStoreServer successor(options);
  store.get()->set("key", "value", soon());
}

TEST(TcpStoreClient, WithoutASecretWhoeverClosesTwiceIsAStranger) {
  const UniqueFd listener = tcp_listen("127.0.0.1", 0);
  const Endpoint place{"127.0.0.1", local_port(listener.get())};
  auto stranger = std::async(std::launch::async, [&] {
    for (int knocks = 0; knocks < 2; ++knocks) tcp_accept(listener.get(), soon());
  });
  const auto start = std::chrono::steady_clock::now();
  const auto error = error_of([&] { connect_tcp_store(place, "", soon()); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "not at the deadline";
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_TRUE(mentions(error, "not a store of this user")) << error.what();
  stranger.get();
}

TEST(TcpStoreServer, TakenPortIsNamed) {
  const TcpStoreServer first({});
  TcpStoreServerOptions options;
  options.port = first.port();
  const auto error = error_of([&] { TcpStoreServer second(options); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(mentions(error, std::to_string(first.port()))) << error.what();
}

TEST(TcpStoreClient, NobodyThereIsATimeout) {
  const testing::HeldPort port;
  const auto error = error_of([&] {
    connect_tcp_store({"127.0.0.1", port.number()}, "", Deadline::after(50ms));
  });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, std::to_string(port.number()))) << error.what();
}

TEST(TcpStoreClient, WhatIsNoStoreIsAMismatch) {
  const UniqueFd listener = tcp_listen("127.0.0.1", 0);
  for (const std::string_view greeting : {"",
                                          "220 mail.example.org ESMTP ready, how are you? "
                                          "It is a fine day today, is it not?\r\n"}) {
    auto foreign = std::async(std::launch::async, [&] {
      const UniqueFd fd = tcp_accept(listener.get(), soon());
      put(fd, greeting);
    });
    const auto error = error_of([&] {
      connect_tcp_store({"127.0.0.1", local_port(listener.get())}, "secret", soon());
    });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
  }
}

/// Accepts clients as a store does, and drops each after its greeting.
class Dropping {
 public:
  Dropping()
      : listener_(tcp_listen("127.0.0.1", port_.number())),
        place_{"127.0.0.1", local_port(listener_.get())},
        thread_(std::async(std::launch::async, [this] { run(); })) {}
  ~Dropping() { end(); }
  const Endpoint& place() const { return place_; }
  int dropped() const { return dropped_; }
  void end() {
    if (!thread_.valid()) return;
    done_ = true;
    tcp_connect(place_, soon());
    thread_.get();
    listener_.reset();
  }

 private:
  void run() {
    while (true) {
      const UniqueFd fd = tcp_accept(listener_.get(), soon());
      if (done_) return;
      const Hello hello = make_hello();
      // Unread bytes would make the kernel discard sent ones.
      std::array<char, sizeof(Hello) + sizeof(Digest)> theirs;
      try {
        send_all(fd.get(), &hello, sizeof hello, soon(), "client");
        recv_all(fd.get(), theirs.data(), theirs.size(), soon(), "client");
      } catch (const Error&) {  // its time was over just then
      }
      ++dropped_;
    }
  }
  const testing::HeldPort port_;  ///< Nobody else listens there after end().
  UniqueFd listener_;
  const Endpoint place_;
  std::atomic<bool> done_{false};
  std::atomic<int> dropped_{0};
  std::future<void> thread_;
};

TEST(TcpStoreClient, AStoreThatEndsWhileOneConnectsIsUnavailable) {
  const Dropping ending;
  // Long enough for a first handshake on a busy machine.
  const auto error =
      error_of([&] { connect_tcp_store(ending.place(), "secret", Deadline::after(2s)); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << error.what();
}

// As one of too many unproved clients: their host is busy.
TEST(TcpStoreClient, OneThatIsDroppedAfterTheGreetingComesAgain) {
  Dropping crowded;
  auto client = std::async(std::launch::async,
                           [&] { return connect_tcp_store(crowded.place(), "secret", soon()); });
  while (crowded.dropped() < 9) {  // longer than an ending store takes
    ASSERT_EQ(client.wait_for(1ms), std::future_status::timeout) << "it gives up";
  }
  crowded.end();
  TcpStoreServerOptions options = with_secret();
  options.port = crowded.place().port;
  const TcpStoreServer server(options);
  client.get()->set("k", "v", soon());
}

TEST(TcpStoreClient, NonsenseFromTheServerLosesIt) {
  const UniqueFd listener = tcp_listen("127.0.0.1", 0);
  auto foreign = std::async(std::launch::async, [&] {
    UniqueFd fd = tcp_accept(listener.get(), soon());
    testing::authenticate_server(fd.get(), "secret", "store", soon());
    put(fd, "\xff\xff\xff\xff");
    return fd;
  });
  const auto store = connect_tcp_store({"127.0.0.1", local_port(listener.get())}, "secret", soon());
  EXPECT_EQ(error_of([&] { store->get("k", soon()); }).code(), ErrorCode::kPeerLost);
}

TEST_F(TcpStoreTest, ServerThatEndsIsAnErrorForEveryWaiter) {
  const auto store = connect();
  std::vector<std::future<Error>> waits;
  waits.reserve(6);
  for (int i = 0; i < 6; ++i) {
    waits.push_back(std::async(std::launch::async,
                               [&] { return error_of([&] { store->get("never", soon()); }); }));
  }
  EXPECT_EQ(waits[0].wait_for(50ms), std::future_status::timeout);
  server_.reset();
  for (auto& wait : waits) {
    const auto error = wait.get();
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost) << error.what();
    EXPECT_TRUE(mentions(error, "127.0.0.1:")) << error.what();
  }
  EXPECT_EQ(error_of([&] { store->set("k", "v", soon()); }).code(), ErrorCode::kPeerLost);
}

TEST(TcpStoreClient, KilledServerProcessIsLostAtOnce) {
  ServerProcess server;
  const auto store = server.connect();
  auto wait = std::async(std::launch::async, [&] {
    return error_of([&] { store->get("never", Deadline::after(1h)); }).code();
  });
  EXPECT_EQ(wait.wait_for(50ms), std::future_status::timeout);
  server.end();
  EXPECT_EQ(wait.get(), ErrorCode::kPeerLost);
}

TEST(TcpStoreClient, StoppedServerIsATimeoutAndTheConnectionLivesOn) {
  ServerProcess server;
  const auto store = server.connect();
  server.stop();
  const auto error = error_of([&] { store->set("k", "v", Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "'k'")) << error.what();
  // More than a socket holds: the rest must wait here, and arrive in order.
  const std::string large(static_cast<size_t>(kMaxValueBytes), 'x');
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(error_of([&] { store->set("large", large, Deadline::after(20ms)); }).code(),
              ErrorCode::kTimeout);
  }
  server.go_on();
  EXPECT_EQ(store->get("k", soon()), "v");
  EXPECT_EQ(store->get("large", soon()), large);
}

TEST(TcpStoreClient, WhatAStoppedServerMayLeaveHereIsBounded) {
  ServerProcess server;
  const auto store = server.connect();
  server.stop();
  const std::string large(static_cast<size_t>(kMaxValueBytes), 'x');
  auto leader = std::async(std::launch::async, [&] { return store->get("end", soon()); });
  bool refused = false;
  for (int i = 0; i < 20 && !refused; ++i) {
    const auto error = error_of([&] { store->set("large", large, Deadline::after(1ms)); });
    refused = mentions(error, "does not read");
  }
  EXPECT_TRUE(refused);
  auto patient = std::async(std::launch::async, [&] { store->set("end", "reached", soon()); });
  EXPECT_EQ(patient.wait_for(20ms), std::future_status::timeout);
  server.go_on();
  patient.get();
  EXPECT_EQ(leader.get(), "reached");
  EXPECT_EQ(store->get("large", soon()), large);
}

// The leader began to wait before these bytes, and does not know of them.
TEST(TcpStoreClient, BytesThatDidNotGoOutAtOnceDoWhileAnotherLeads) {
  ServerProcess server;
  const auto store = server.connect();
  const auto other = server.connect();
  auto leader = std::async(std::launch::async, [&] {
    store->arrive("leader", "", std::vector<std::string>{"end"}, soon());
  });
  other->get("leader", soon());
  server.stop();
  const std::string large(static_cast<size_t>(kMaxValueBytes), 'x');
  std::vector<std::future<void>> sets;
  for (const char* key : {"a", "b"}) {
    sets.push_back(std::async(std::launch::async, [&, key] { store->set(key, large, soon()); }));
  }
  EXPECT_EQ(sets[0].wait_for(20ms), std::future_status::timeout);
  server.go_on();
  for (auto& set : sets) set.get();
  EXPECT_EQ(other->get("a", soon()), large);
  EXPECT_EQ(other->get("b", soon()), large);
  other->set("end", "", soon());
  leader.get();
}

TEST_F(TcpStoreTest, AClientThatNeverReadsDoesNotHoldUpOthers) {
  const auto store = connect();
  store->set("large", std::string(static_cast<size_t>(kMaxValueBytes), 'x'), soon());
  const UniqueFd greedy = raw();
  authenticate_client(greedy.get(), "secret", "store", soon());
  // The client requests 200 replies of 8 MiB at once; the server must stop answering long before.
  RequestFrame frame;
  frame.request.op = StoreOp::kGet;
  frame.request.keys = {"large"};
  std::string requests;
  for (frame.id = 1; frame.id <= 200; ++frame.id) requests += encode(frame);
  put(greedy, requests);
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < 100; ++i) store->add("n", 1, soon());
  EXPECT_EQ(store->add("n", 0, soon()), 100);
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  // In KiB. All replies would be 1,600 MiB; AddressSanitizer keeps up to 256 MiB of freed memory.
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 600 << 10);
  // Once the client reads, the postponed requests are answered.
  std::string replies(5 * kMaxValueBytes, ' ');
  recv_all(greedy.get(), replies.data(), replies.size(), soon(), "server");
}

/// A client that has proved itself, and the server's end of its connection.
struct ProvedPair {
  std::array<UniqueFd, 2> ends = pair();
  UniqueFd client = std::move(ends[1]);
  ServerConnection connection{std::move(ends[0]), 1, "secret"};

  ProvedPair() {
    auto proof = std::async(std::launch::async,
                            [&] { authenticate_client(client.get(), "secret", "store", soon()); });
    while (!connection.proved()) connection.receive([](const RequestFrame&) {});
    proof.get();
  }
  static std::array<UniqueFd, 2> pair() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
      throw io_error("socketpair");
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
  }
};

TEST(ServerConnection, WhatIsOutTakesNoRoomWhileMoreWaits) {
  ProvedPair pair;
  const std::string piece(64 << 10, 'x');
  std::string taken(piece.size(), ' ');
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(pair.connection.send(piece));
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(pair.connection.send(piece));
    ASSERT_GT(pair.connection.backlog(), 0U);
    recv_all(pair.client.get(), taken.data(), taken.size(), soon(), "server");
  }
  EXPECT_LT(pair.connection.room_taken(), 8U << 20) << "32 MiB went through";
}

// Nothing else would serve them: a request of another client may send the whole backlog.
TEST(ServerConnection, MessagesThatWaitForTheBacklogAreServedAfterIt) {
  ProvedPair pair;
  ServerConnection& connection = pair.connection;
  RequestFrame frame;
  frame.request.op = StoreOp::kGet;
  frame.request.keys = {"k"};
  put(pair.client, encode(frame) + encode(frame));
  std::string reply(2 * ServerConnection::kPauseBacklog, 'x');
  std::string taken(reply.size(), ' ');
  int served = 0;
  const auto serve = [&](const RequestFrame&) {
    ++served;
    EXPECT_TRUE(connection.send(reply));
  };
  EXPECT_TRUE(connection.receive(serve));
  EXPECT_EQ(served, 1);
  EXPECT_EQ(connection.wanted_events(), uint32_t{EPOLLOUT});
  while (connection.backlog() > 0) {
    ASSERT_GT(recv_some(pair.client.get(), taken.data(), taken.size(), soon(), "server"), 0U);
    EXPECT_TRUE(connection.flush());
  }
  EXPECT_EQ(connection.wanted_events(), EPOLLIN | EPOLLOUT);
  reply = "short";
  connection.serve_requests(serve);
  EXPECT_EQ(served, 2);
  EXPECT_EQ(connection.wanted_events(), uint32_t{EPOLLIN});
}

// Otherwise all replies for such a client would be made while others wait.
TEST(ServerConnection, AClientThatIsGoneIsNotServedOn) {
  ProvedPair pair;
  ServerConnection& connection = pair.connection;
  UniqueFd& client = pair.client;
  RequestFrame frame;
  frame.request.op = StoreOp::kGet;
  frame.request.keys = {"k"};
  put(client, encode(frame) + encode(frame) + encode(frame));
  client.reset();
  int served = 0;
  connection.receive([&](const RequestFrame&) {
    ++served;
    EXPECT_FALSE(connection.send("reply"));
  });
  EXPECT_EQ(served, 1);
}

TEST_F(TcpStoreTest, AClientThatVanishesInAWaitIsForgotten) {
  const auto store = connect();
  for (int i = 0; i < 20; ++i) {
    const UniqueFd fd = raw();
    authenticate_client(fd.get(), "secret", "store", soon());
    RequestFrame frame;
    frame.request.op = StoreOp::kGet;
    frame.request.keys = {"k"};
    put(fd, encode(frame));
  }
  store->set("k", "v", soon());
  EXPECT_EQ(store->get("k", soon()), "v");
}

TEST_F(TcpStoreTest, ManyThreadsShareOneConnection) {
  const auto store = connect();
  run_threads(16, [&](int t) {
    const std::string key = "k" + std::to_string(t);
    const std::string value(static_cast<size_t>(t) * 10'000, static_cast<char>('a' + t));
    for (int i = 0; i < 20; ++i) {
      store->set(key, value, soon());
      EXPECT_EQ(store->get(key, soon()), value);
      EXPECT_TRUE(store->watch("none", 0, Deadline::after(1ms)).changes.empty());
    }
  });
}

/// Requires `count` descriptors.
void need_fds(rlim_t count) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_GE(limit.rlim_max, count) << "this machine allows too few file descriptors";
  limit.rlim_cur = std::max(limit.rlim_cur, count);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_F(TcpStoreTest, AThousandClientsAtOnceMeetAtABarrier) {
  constexpr int kClients = 1000;
  need_fds(2 * kClients + 100);  // both ends
  std::atomic<int> came = 0;
  run_threads(kClients, [&](int rank) {
    const auto store = connect_tcp_store(endpoint(), "secret", Deadline::after(60s));
    ++came;
    store_barrier(*store, "all", rank, kClients, Deadline::after(60s));
    EXPECT_EQ(came, kClients);
  });
}

TEST(TcpStoreServer, RaisesItsLimitOfDescriptorsWhenTheyRunOut) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const TcpStoreServer server({});
  const Endpoint endpoint{"127.0.0.1", server.port()};
  std::vector<std::shared_ptr<Store>> stores = {connect_tcp_store(endpoint, "", soon())};
  rlimit low = old;
  low.rlim_cur = 128;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  std::vector<UniqueFd> ballast;
  while (const int fd = ::dup(STDERR_FILENO) + 1) ballast.emplace_back(fd - 1);
  ballast.pop_back();  // the one left is for the client's end; the server's finds none
  EXPECT_NO_THROW(stores.push_back(connect_tcp_store(endpoint, "", soon())));
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_GT(now.rlim_cur, low.rlim_cur);
  ::setrlimit(RLIMIT_NOFILE, &old);
}

// The last client took the last descriptor for clients: no other waits for one. One client more or
// less is decided by whether `held` is odd.
int take_the_last_room(int held) {
  const rlimit low{160, 160};
  ::setrlimit(RLIMIT_NOFILE, &low);
  ::testing::internal::CaptureStderr();
  std::vector<UniqueFd> ballast;
  for (int i = 0; i < held; ++i) ballast.emplace_back(::dup(STDERR_FILENO));
  const TcpStoreServer server({.secret = "secret"});
  const Endpoint endpoint{"127.0.0.1", server.port()};
  std::vector<std::shared_ptr<Store>> clients;
  const auto room_for_both_ends = [] {
    const UniqueFd own(::dup(STDERR_FILENO));
    return has_descriptor_for_client(STDERR_FILENO);
  };
  while (room_for_both_ends()) clients.push_back(connect_tcp_store(endpoint, "secret", soon()));
  std::this_thread::sleep_for(250ms);  // longer than the server pauses
  const std::string said = ::testing::internal::GetCapturedStderr();
  std::cerr << said;
  return clients.size() < 30 ? 2 : said.empty() ? 0 : 3;
}

/// Runs `body` in a child, and returns its status; an exception there is 4.
int status_in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      ::_exit(body());
    } catch (const std::exception& error) {
      std::cerr << error.what() << "\n";
      ::_exit(4);
    }
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(TcpStoreServer, OneWhoseLastRoomIsTakenIsNotShortOfAny) {
  for (const int held : {0, 1}) {
    EXPECT_EQ(status_in_child([&] { return take_the_last_room(held); }), 0);
  }
}

// As many as a hard limit allows, except the reserved ones; a later client can never connect.
TEST(TcpStoreServer, OneThatIsFullForGoodSaysSo) {
  const int status = status_in_child([] {  // a hard limit cannot be raised again
    const rlimit low{160, 160};
    ::setrlimit(RLIMIT_NOFILE, &low);
    std::promise<std::string> full;
    const TcpStoreServer server(
        {.secret = "secret", .on_full = [&](const std::string& why) { full.set_value(why); }});
    const Endpoint endpoint{"127.0.0.1", server.port()};
    std::vector<std::shared_ptr<Store>> clients;
    try {
      while (clients.size() < 100) {
        clients.push_back(connect_tcp_store(endpoint, "secret", Deadline::after(2s)));
      }
    } catch (const Error&) {  // connected, but not accepted
    }
    auto told = full.get_future();
    if (told.wait_for(30s) != std::future_status::ready) return 1;
    const std::string why = told.get();
    const std::string number = "has " + std::to_string(clients.size()) + " clients";
    const bool kept = clients.size() >= 30 && clients.size() < 60;  // both ends are of this process
    const bool said = why.find("may open 160 files") != std::string::npos &&
                      why.find(number) != std::string::npos;
    return !kept ? 2 : said ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockstep
