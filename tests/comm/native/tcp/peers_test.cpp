#include "lockstep/comm/native/tcp/peers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <latch>
#include <memory>
#include <thread>

#include "lockstep/base/auth.h"
#include "lockstep/base/descriptors.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "tests/support/error_of.h"
#include "tests/support/held_port.h"

namespace lockstep::tcp {
namespace {

std::vector<int> all_but(int rank, int size) {
  std::vector<int> peers;
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) peers.push_back(peer);
  }
  return peers;
}

/// Ranks of one group, each with a Reception for its peers.
struct Ranks {
  explicit Ranks(int size, const std::string& secret = make_job_secret(),
                 const std::string& name = "g") {
    Peers::Group group;
    group.name = name;
    group.secret = secret;
    for (int rank = 0; rank < size; ++rank) {
      receptions.push_back(std::make_shared<Reception>(rank, "127.0.0.1", secret));
      group.world_ranks.push_back(rank);
      group.endpoints.push_back(receptions.back()->endpoint());
    }
    for (int rank = 0; rank < size; ++rank) {
      group.rank = rank;
      group.reception = receptions[static_cast<size_t>(rank)];
      peers.push_back(std::make_unique<Peers>(group));
    }
  }
  Peers& operator[](int rank) { return *peers[static_cast<size_t>(rank)]; }

  std::vector<std::shared_ptr<Reception>> receptions;
  std::vector<std::unique_ptr<Peers>> peers;
};

/// Connects all ranks, which are threads, with each other; `disturb` runs before the last comes.
std::vector<std::vector<UniqueFd>> connect_all(Ranks& ranks, int size,
                                               const std::function<void()>& disturb = {}) {
  std::vector<std::vector<UniqueFd>> sockets(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      if (disturb && rank == size - 1) disturb();
      sockets[static_cast<size_t>(rank)] =
          ranks[rank].meet(all_but(rank, size), Deadline::after(30s));
    });
  }
  for (auto& thread : threads) thread.join();
  return sockets;
}

void expect_connected(const std::vector<std::vector<UniqueFd>>& sockets) {
  const auto size = sockets.size();
  for (size_t a = 0; a < size; ++a) {
    for (size_t b = 0; b < size; ++b) {
      EXPECT_EQ(static_cast<bool>(sockets[a][b]), a != b);
      if (a == b) continue;
      const size_t word = a * 100 + b;
      send_all(sockets[a][b].get(), &word, sizeof word, Deadline::after(5s), "peer");
    }
  }
  for (size_t a = 0; a < size; ++a) {
    for (size_t b = 0; b < size; ++b) {
      if (a == b) continue;
      size_t word = 0;
      recv_all(sockets[a][b].get(), &word, sizeof word, Deadline::after(5s), "peer");
      EXPECT_EQ(word, b * 100 + a);
    }
  }
}

int num_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

TEST(Peers, EveryPairIsConnected) {
  Ranks ranks(5);
  expect_connected(connect_all(ranks, 5));
}

/// In any order of arrival: all at once, or one after the other.
TEST(Peers, EveryPairHasOneConnectionInTheEnd) {
  constexpr int kRanks = 4;
  for (int turn = 0; turn < 60; ++turn) {
    Ranks ranks(kRanks, "secret");
    const int before = num_descriptors();
    std::latch start(turn % 3 == 0 ? 1 : kRanks);
    std::vector<std::vector<UniqueFd>> sockets(kRanks);
    std::vector<std::thread> threads;
    for (int i = 0; i < kRanks; ++i) {
      const int rank = turn % 2 == 0 ? i : kRanks - 1 - i;
      threads.emplace_back([&, rank] {
        if (turn % 3 != 0) start.arrive_and_wait();
        sockets[static_cast<size_t>(rank)] =
            ranks[rank].meet(all_but(rank, kRanks), Deadline::after(30s));
      });
    }
    for (auto& thread : threads) thread.join();
    expect_connected(sockets);
    EXPECT_EQ(num_descriptors(), before + kRanks * (kRanks - 1));
  }
}

TEST(Peers, WhoLeftWithoutComingIsLostToThoseThatWait) {
  for (const int leaves : {0, 1}) {
    Ranks ranks(2, "secret");
    const int stays = 1 - leaves;
    Error error(ErrorCode::kInternal, "no error");
    std::atomic<bool> waits = false;
    std::thread other([&] {
      error = error_of([&] {
        ranks[stays].meet(std::vector{leaves}, Deadline::after(30s),
                          [&](const auto&) { return waits = true; });
      });
    });
    while (!waits) std::this_thread::yield();
    ranks[leaves].end();
    other.join();
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_NE(std::string(error.what()).find("rank " + std::to_string(leaves)), std::string::npos)
        << error.what();
  }
}

TEST(Peers, WithoutSecretOnLoopback) {
  Ranks ranks(2, "");
  expect_connected(connect_all(ranks, 2));
}

TEST(Peers, WithoutSecretNothingButLoopback) {
  const auto error = error_of([] { const Reception reception(0, "10.1.2.3", ""); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
}

// A name that means 127.0.1.1 on its own host alone, and an address that is none of this host's.
TEST(Peers, TheAddressThatOthersUseNeedNotBeOneToListenAt) {
  for (const char* announced : {"0x7f000101", "192.0.2.7"}) {
    const Reception reception(0, announced, "secret");
    const Endpoint place = parse_endpoint(reception.endpoint(), 0);
    EXPECT_EQ(place.host, announced);
    EXPECT_TRUE(tcp_connect({"127.0.0.1", place.port}, Deadline::after(30s)));
  }
}

TEST(Peers, ANameThatIsUnknownForAMomentIsLookedUpAgain) {
  Peers::Group group;
  group.name = "g";
  group.secret = "secret";
  group.world_ranks = {0, 1};
  group.reception = std::make_shared<Reception>(0, "127.0.0.1", group.secret);
  // No name server is asked for a word of more than 63 letters.
  group.endpoints = {group.reception->endpoint(), std::string(64, 'x') + ":1"};
  const Peers peers(group);
  int looks = 0;
  const auto error = error_of([&] {
    peers.connect(1, Deadline::after(30s), [&] {
      if (++looks == 2) throw Error(ErrorCode::kTimeout, "enough");
    });
  });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
  EXPECT_EQ(looks, 2);
}

TEST(Peers, StrangersAreDroppedAndDoNotDelay) {
  Ranks ranks(3);
  std::vector<UniqueFd> strangers;
  std::thread wrong;
  const auto disturb = [&] {
    const auto endpoint = parse_endpoint(ranks.receptions[0]->endpoint(), 0);
    for (int i = 0; i < 4; ++i) strangers.push_back(tcp_connect(endpoint, Deadline::after(10s)));
    // Silence; half a greeting; noise; a port scan that has closed again.
    send_all(strangers[1].get(), "LOCK", 4, Deadline::after(5s), "rank 0");
    const std::string noise(500, 'x');
    send_all(strangers[2].get(), noise.data(), noise.size(), Deadline::after(5s), "rank 0");
    strangers[3].reset();
    // The right program, but not this job's secret.
    auto fd = tcp_connect(endpoint, Deadline::after(10s));
    wrong = std::thread([fd = std::move(fd)] {
      EXPECT_THROW(authenticate_client(fd.get(), "wrong", "comm", Deadline::after(10s)), Error);
    });
  };
  const auto start = Deadline::Clock::now();
  expect_connected(connect_all(ranks, 3, disturb));
  EXPECT_LT(Deadline::Clock::now() - start, 4s);  // it did not wait for a stranger
  wrong.join();
  EXPECT_NE(ranks.receptions[0]->last_refusal().find("; last connection refused: "),
            std::string::npos);
}

/// More than are served at a time.
TEST(Peers, SilentStrangersInGreatNumberKeepNobodyOut) {
  raise_soft_descriptor_limit();
  Ranks ranks(2);
  std::vector<UniqueFd> strangers;
  const auto endpoint = parse_endpoint(ranks.receptions[0]->endpoint(), 0);
  for (int i = 0; i < 1100; ++i) strangers.push_back(tcp_connect(endpoint, Deadline::after(10s)));
  expect_connected(connect_all(ranks, 2));
}

TEST(Peers, MissingRanksAreNamed) {
  Ranks ranks(4);
  const auto error = error_of([&] { ranks[1].meet(all_but(1, 4), Deadline::after(200ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_NE(
      std::string(error.what()).find("rank 1: no connection with ranks 0, 2, 3: they did not come"),
      std::string::npos)
      << error.what();
}

TEST(Peers, WhoListensNoMoreIsLostAtOnce) {
  Ranks ranks(2);
  const testing::HeldPort port;
  const std::string endpoint = to_string(Endpoint{"127.0.0.1", port.number()});
  Peers::Group group{ranks.receptions[1], "g", "", 1, {4, 7}, {endpoint, ""}};
  const Peers peers(group);
  const auto start = Deadline::Clock::now();
  const auto error = error_of([&] { peers.connect(0, Deadline::after(20s)); });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_NE(std::string(error.what()).find("rank 7 connecting to rank 4: no process listens at "),
            std::string::npos)
      << error.what();
  EXPECT_LT(Deadline::Clock::now() - start, 5s);
}

std::string endpoint_of(const UniqueFd& listener) {
  return to_string(Endpoint{"127.0.0.1", local_port(listener.get())});
}

/// Rank 7's side of a group with rank 4, at whose endpoint a stranger may be.
Peers::Group group_beside(const std::string& endpoint) {
  return {std::make_shared<Reception>(7, "127.0.0.1", "secret"),
          "g",
          "secret",
          1,
          {4, 7},
          {endpoint, ""}};
}

/// A stranger has taken its port, and waits for the other end to speak.
TEST(Peers, WhoDiedIsLostAlthoughItsPortIsHeld) {
  const UniqueFd silent = tcp_listen("127.0.0.1", 0);
  auto group = group_beside(endpoint_of(silent));
  int questions = 0;
  group.why_silent = [&](int rank) {
    return ++questions < 2 ? "" : "rank " + std::to_string(rank) + " died";
  };
  const Peers peers(group);
  const auto start = Deadline::Clock::now();
  for (const bool meets : {false, true}) {
    const auto error = error_of([&] {
      meets ? void(peers.meet(std::vector{0}, Deadline::after(60s)))
            : void(peers.connect(0, Deadline::after(60s)));
    });
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_STREQ(error.what(), "rank 7 connecting to rank 4: rank 4 died");
  }
  EXPECT_LT(Deadline::Clock::now() - start, 30s);
}

/// A rank of another job has its port.
TEST(Peers, WhoDiedIsLostAlthoughAStrangerAnswersAtItsPort) {
  const Reception stranger(0, "127.0.0.1", "another secret");
  auto group = group_beside(stranger.endpoint());
  const auto connect = [&] {
    return error_of([&] { Peers(group).connect(0, Deadline::after(60s)); });
  };
  EXPECT_EQ(connect().code(), ErrorCode::kMismatch);
  group.why_silent = [](int /*rank*/) { return ""; };
  EXPECT_EQ(connect().code(), ErrorCode::kMismatch);
  group.why_silent = [](int rank) { return "rank " + std::to_string(rank) + " died"; };
  const auto error = connect();
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_STREQ(error.what(), "rank 7 connecting to rank 4: rank 4 died");
}

/// Other servers greet first, too: with a line, or with a hello of encrypted connections.
TEST(Peers, WhoDiedIsLostAlthoughAServerOfAnotherKindGreetsAtItsPort) {
  const UniqueFd listener = tcp_listen("127.0.0.1", 0);
  auto group = group_beside(endpoint_of(listener));
  const Hello encrypted = make_hello(Wire::kTls);
  const std::string_view hello(reinterpret_cast<const char*>(&encrypted), sizeof encrypted);
  for (const std::string_view greeting : {std::string_view("220 ready\r\n"), hello}) {
    std::thread server([&] {
      const UniqueFd client = tcp_accept(listener.get(), Deadline::after(30s));
      send_all(client.get(), greeting.data(), greeting.size(), Deadline::after(5s), "client");
      char byte = 0;
      while (::recv(client.get(), &byte, 1, 0) > 0) continue;  // until it has given up
    });
    group.why_silent = [](int /*rank*/) { return "rank 4 died"; };
    const auto error = error_of([&] { Peers(group).connect(0, Deadline::after(60s)); });
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_STREQ(error.what(), "rank 7 connecting to rank 4: rank 4 died");
    server.join();
  }
}

/// CPU time of this thread.
double busy_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

TEST(Peers, AHostWithoutAWayThereIsTriedUntilTimeIsOver) {
  Peers::Group group;
  group.name = "g";
  group.secret = make_job_secret();
  group.rank = 1;
  group.world_ranks = {0, 1};
  group.endpoints = {"224.0.0.1:9",
                     "127.0.0.1:9"};  // the kernel refuses at once, and sends nothing
  group.reception = std::make_shared<Reception>(1, "127.0.0.1", group.secret);
  const Peers peers(group);
  const auto start = std::chrono::steady_clock::now();
  const double before = busy_seconds();
  const Error error = error_of([&] { peers.connect(0, Deadline::after(500ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_NE(std::string(error.what()).find("unreachable"), std::string::npos) << error.what();
  EXPECT_GE(std::chrono::steady_clock::now() - start, 500ms);
  EXPECT_LT(busy_seconds() - before, 0.1);
}

/// Connections are kept for a group that is not made yet; another group takes none of them; a group
/// that has ended keeps none.
TEST(Peers, ConnectionsWaitForTheirGroup) {
  Ranks early(2, "secret");
  const auto to_later = [&](const std::string& name) {
    Peers::Group group{early.receptions[0], name, "secret", 0, {0, 1}, {}};
    for (const auto& reception : early.receptions) group.endpoints.push_back(reception->endpoint());
    return group;
  };
  const Peers zero(to_later("later"));
  const UniqueFd sent = zero.connect(1, Deadline::after(20s));
  EXPECT_FALSE(early[1].take(0));
  auto group = to_later("later");
  group.rank = 1;
  group.reception = early.receptions[1];
  auto one = std::make_unique<Peers>(group);
  EXPECT_TRUE(await_ready(one->expect(0), POLLIN, Deadline::after(20s), {}));
  EXPECT_TRUE(one->take(0));
  EXPECT_FALSE(one->take(0)) << "it was taken";
  one.reset();
  EXPECT_EQ(error_of([&] { zero.connect(1, Deadline::after(20s)); }).code(), ErrorCode::kPeerLost);
}

TEST(Peers, WhatToldOfAConnectionIsClosedWithoutIt) {
  Ranks ranks(2);
  const int before = num_descriptors();
  const int told = ranks[1].expect(0);
  EXPECT_EQ(num_descriptors(), before + 1);
  UniqueFd sent = ranks[0].connect(1, Deadline::after(20s));
  EXPECT_TRUE(await_ready(told, POLLIN, Deadline::after(20s), {}));
  UniqueFd taken = ranks[1].take(0);
  EXPECT_EQ(num_descriptors(), before + 2) << "the two ends";
  sent.reset();
  taken.reset();
  EXPECT_EQ(num_descriptors(), before);
}

TEST(Peers, WhoConnectsCanBeInterrupted) {
  // A frozen rank: the kernel accepts the connection, but no greeting comes.
  const UniqueFd frozen = tcp_listen("127.0.0.1", 0);
  const auto endpoint = to_string(Endpoint{"127.0.0.1", local_port(frozen.get())});
  Ranks ranks(1);
  const Peers peers(Peers::Group{ranks.receptions[0], "g", "", 0, {0, 1}, {"", endpoint}});
  int looks = 0;
  const auto error = error_of([&] {
    peers.connect(1, Deadline::after(20s), [&] {
      if (++looks == 3) throw Error(ErrorCode::kCorrupt, "enough");
    });
  });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error_of([&] { peers.connect(1, Deadline::after(50ms)); }).code(), ErrorCode::kTimeout);
}

#ifndef __SANITIZE_ADDRESS__  // UBSan, built with it, needs a descriptor to check a virtual call
/// While it lives, no descriptor can be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const UniqueFd lowest_free(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(lowest_free.get());
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(Peers, OutOfDescriptorsIsSaidAndCostsNoCore) {
  Ranks ranks(2);
  const auto endpoint = parse_endpoint(ranks.receptions[0]->endpoint(), 0);
  const UniqueFd stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  timespec used{};
  {
    const NoDescriptors none;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(endpoint.port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timespec before{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    ASSERT_EQ(
        ::connect(stranger.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    std::this_thread::sleep_for(500ms);
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    used.tv_sec -= before.tv_sec;
    used.tv_nsec -= before.tv_nsec;
  }
  const auto why = ranks.receptions[0]->last_refusal();
  EXPECT_NE(why.find("Too many open files"), std::string::npos) << why;
  EXPECT_LT(static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9, 0.2);
}

#endif

TEST(Peers, SocketsAreTuned) {
  Ranks ranks(2);
  const auto sockets = connect_all(ranks, 2);
  const int fd = sockets[0][1].get();
  int value = 0;
  socklen_t size = sizeof value;
  ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size);
  EXPECT_NE(value, 0);
  ::getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size);
  EXPECT_EQ(value, 24 * 3600 * 1000);
  char name[16] = {};
  size = sizeof name;
  ::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size);
  EXPECT_TRUE(std::string(name) == "cubic" || std::string(name) == "reno") << name;
}

}  // namespace
}  // namespace lockstep::tcp
