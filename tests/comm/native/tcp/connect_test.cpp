#include "lockstep/comm/native/tcp/connect.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include <mutex>
#include <thread>

#include "lockstep/base/auth.h"
#include "lockstep/base/error.h"
#include "lockstep/base/socket.h"
#include "lockstep/store/memory/memory_store.h"
#include "tests/support/error_of.h"

namespace lockstep::tcp {
namespace {

std::vector<int> all_but(int rank, int size) {
  std::vector<int> peers;
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) peers.push_back(peer);
  }
  return peers;
}

/// Connects `size` ranks that are threads; `disturb` runs beside them with the store.
std::vector<std::vector<UniqueFd>> connect_all(int size, const std::string& secret,
                                               const std::function<void(Store&)>& disturb = {}) {
  const auto store = make_memory_store();
  std::vector<std::vector<UniqueFd>> sockets(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      // The last rank comes only after the disturbance, so that the others are still listening.
      if (disturb && rank == size - 1) disturb(*store);
      const Rendezvous self{*store, "g", "127.0.0.1", secret, rank, size};
      sockets[static_cast<size_t>(rank)] =
          connect_peers(self, all_but(rank, size), Deadline::after(30s));
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

TEST(Connect, EveryPairIsConnected) {
  expect_connected(connect_all(5, make_job_secret()));
}

TEST(Connect, WithoutSecretOnLoopback) {
  expect_connected(connect_all(2, ""));
}

TEST(Connect, WithoutSecretNothingButLoopback) {
  const auto store = make_memory_store();
  const Rendezvous self{*store, "g", "10.1.2.3", "", 0, 2};
  const int peers[] = {1};
  try {
    connect_peers(self, peers, Deadline::after(5s));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  }
}

TEST(Connect, StrangersAreDroppedAndDoNotDelay) {
  std::vector<UniqueFd> strangers;
  std::thread wrong;
  const auto disturb = [&](Store& store) {
    const auto endpoint = parse_endpoint(store.get("g/tcp/0", Deadline::after(10s)), 0);
    for (int i = 0; i < 4; ++i) strangers.push_back(tcp_connect(endpoint, Deadline::after(10s)));
    // Silence; half a greeting; noise; a port scan that is gone again.
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
  expect_connected(connect_all(3, make_job_secret(), disturb));
  EXPECT_LT(Deadline::Clock::now() - start, 4s);  // no stranger was waited for
  wrong.join();
}

TEST(Connect, MissingRanksAreNamed) {
  const auto store = make_memory_store();
  const Rendezvous self{*store, "g", "127.0.0.1", "", 1, 4};
  store->set("g/tcp/0", "127.0.0.1:1", Deadline::after(5s));
  const int peers[] = {0, 2, 3};
  try {
    connect_peers(self, peers, Deadline::after(200ms));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_NE(std::string(error.what()).find("ranks 2, 3: they did not come"), std::string::npos)
        << error.what();
  }
}

TEST(Connect, AnErrorNamesRanksByTheirNumbersInTheWorld) {
  const auto store = make_memory_store();
  const Rendezvous self{*store, "g", "127.0.0.1", "", 1, 3, {4, 7, 5}};
  const auto connect_with = [&](std::vector<int> peers) -> std::string {
    return error_of([&] { connect_peers(self, peers, Deadline::after(100ms)); }).what();
  };
  const auto absent = connect_with({0, 2});
  EXPECT_NE(absent.find("rank 7: no connection with ranks 4, 5"), std::string::npos) << absent;
  store->set("g/tcp/0", "127.0.0.1:1", Deadline::after(5s));  // where nobody listens
  const auto gone = connect_with({0});
  EXPECT_NE(gone.find("rank 7 connecting to rank 4: "), std::string::npos) << gone;
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

TEST(Connect, OutOfDescriptorsIsSaidAndCostsNoCore) {
  const auto store = make_memory_store();
  store->set("g/tcp/1", "127.0.0.1:1", Deadline::after(5s));  // is to connect to rank 0
  std::string why;
  std::thread rank_0([&] {
    const Rendezvous self{*store, "g", "127.0.0.1", "", 0, 2};
    const int peers[] = {1};
    why = error_of([&] { connect_peers(self, peers, Deadline::after(500ms)); }).what();
  });
  const auto endpoint = parse_endpoint(store->get("g/tcp/0", Deadline::after(10s)), 0);
  const UniqueFd stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  timespec used{};
  {
    const NoDescriptors none;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(endpoint.port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(
        ::connect(stranger.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    timespec before{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    rank_0.join();
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    used.tv_sec -= before.tv_sec;
    used.tv_nsec -= before.tv_nsec;
  }
  EXPECT_NE(why.find("Too many open files"), std::string::npos) << why;
  EXPECT_LT(static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9, 0.2);
}

#endif

TEST(Connect, SocketsAreTuned) {
  auto sockets = connect_all(2, "");
  const int fd = sockets[0][1].get();
  tune_socket(fd, 60s);
  int value = 0;
  socklen_t size = sizeof value;
  ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size);
  EXPECT_NE(value, 0);
  ::getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size);
  EXPECT_EQ(value, 60'000);
  char name[16] = {};
  size = sizeof name;
  ::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size);
  EXPECT_TRUE(std::string(name) == "cubic" || std::string(name) == "reno") << name;
}

}  // namespace
}  // namespace lockstep::tcp
