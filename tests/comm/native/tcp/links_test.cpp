#include "lockstep/comm/native/tcp/links.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"

namespace lockstep::tcp {
namespace {

std::string name_of(int rank) {
  return "rank " + std::to_string(rank);
}

/// Ranks 0 and 1, connected; rank 1 also as a bare descriptor for bytes that a Links would never
/// send.
struct LinkPair {
  LinkPair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    std::vector<UniqueFd> first(2);
    first[1].reset(fds[0]);
    zero = std::make_unique<Links>(0, std::move(first), name_of, 0);
    raw.reset(fds[1]);
  }
  Links& one() {
    if (!one_) {
      std::vector<UniqueFd> sockets(2);
      sockets[0] = std::move(raw);
      one_ = std::make_unique<Links>(1, std::move(sockets), name_of, 1);
    }
    return *one_;
  }
  std::unique_ptr<Links> zero;
  UniqueFd raw;

 private:
  std::unique_ptr<Links> one_;
};

Frame of_bytes(int64_t bytes, uint32_t part = 0, OpKind kind = OpKind::kAllReduce) {
  Frame frame;
  frame.operation.kind = kind;
  frame.operation.sequence = 1;
  frame.operation.count = bytes;
  frame.bytes = bytes;
  frame.part = part;
  return frame;
}

std::vector<uint8_t> pattern(size_t size, uint8_t start) {
  std::vector<uint8_t> bytes(size);
  std::iota(bytes.begin(), bytes.end(), start);
  return bytes;
}

Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "no error");
}

TEST(Links, BothDirectionsAtOnceLargerThanAnyBuffer) {
  LinkPair pair;
  const size_t size = 20'000'001;
  const auto from_zero = pattern(size, 3);
  const auto from_one = pattern(size, 99);
  std::vector<uint8_t> at_zero(size);
  std::vector<uint8_t> at_one(size);
  const auto body = [&](Links& links, int peer, const auto& out, auto& in) {
    const Outbound outs[] = {{peer, of_bytes(static_cast<int64_t>(size)), out.data()}};
    const Inbound ins[] = {{peer, of_bytes(static_cast<int64_t>(size)), in.data(), {}}};
    links.exchange(outs, ins, Deadline::after(20s));
  };
  std::thread other([&, &one = pair.one()] { body(one, 0, from_one, at_one); });
  body(*pair.zero, 1, from_zero, at_zero);
  other.join();
  EXPECT_EQ(at_zero, from_one);
  EXPECT_EQ(at_one, from_zero);
}

TEST(Links, MessagesKeepTheirOrderAndEarlyOnesWait) {
  LinkPair pair;
  const auto data = pattern(3000, 0);
  std::vector<Outbound> outs;
  for (uint32_t part = 0; part < 3; ++part)
    outs.push_back({0, of_bytes(1000, part), data.data() + 1000 * part});
  pair.one().exchange(outs, {}, Deadline::after(5s));
  std::vector<uint8_t> got(3000);
  int64_t seen = 0;
  for (uint32_t part = 0; part < 3; ++part) {
    const Inbound ins[] = {
        {1, of_bytes(1000, part), got.data() + 1000 * part, [&](int64_t bytes) { seen = bytes; }}};
    pair.zero->exchange({}, ins, Deadline::after(5s));
    EXPECT_EQ(seen, 1000);
  }
  EXPECT_EQ(got, data);
}

TEST(Links, GatedMessagesWaitForWhatOpensThem) {
  LinkPair pair;
  const size_t size = 1'000'000;
  const auto data = pattern(size, 7);
  std::vector<uint8_t> there(size);
  std::thread peer([&, &one = pair.one()] {
    const Outbound outs[] = {{0, of_bytes(0, 0), nullptr},
                             {0, of_bytes(static_cast<int64_t>(size), 1), data.data()}};
    const Inbound ins[] = {{0, of_bytes(static_cast<int64_t>(size)), there.data(), {}}};
    one.exchange(outs, ins, Deadline::after(10s));
  });
  int64_t arrived = 0;
  int64_t whole = 0;
  bool made = false;
  std::vector<uint8_t> here(size);
  // Received data is sent back, doubled. It may come only after the empty message before.
  const Outbound outs[] = {{1, of_bytes(static_cast<int64_t>(size)), here.data(), {&whole, 1}, [&] {
                              made = true;
                              for (auto& byte : here) byte = static_cast<uint8_t>(2 * byte);
                            }}};
  const Inbound ins[] = {{1, of_bytes(0, 0), nullptr, [&](int64_t) { ++arrived; }},
                         {1,
                          of_bytes(static_cast<int64_t>(size), 1),
                          here.data(),
                          [&](int64_t bytes) {
                            EXPECT_FALSE(made);
                            if (bytes == static_cast<int64_t>(size)) ++whole;
                          },
                          {&arrived, 1}}};
  pair.zero->exchange(outs, ins, Deadline::after(10s));
  peer.join();
  EXPECT_EQ(arrived, 1);
  EXPECT_EQ(here, there);
  EXPECT_EQ(there[1], static_cast<uint8_t>(2 * data[1]));
}

TEST(Links, WhoIsKeptWaitingByAGateIsNotCalledLate) {
  std::vector<UniqueFd> sockets(3);
  std::vector<UniqueFd> peers(3);
  for (const size_t peer : {1, 2}) {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    sockets[peer].reset(fds[0]);
    peers[peer].reset(fds[1]);
  }
  Links links(0, std::move(sockets), name_of, 0);
  const int64_t never = 0;
  const Inbound ins[] = {{1, of_bytes(0), nullptr, {}}, {2, of_bytes(0), nullptr, {}, {&never, 1}}};
  const auto error = error_of([&] { links.exchange({}, ins, Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
  EXPECT_EQ(std::string(error.what()).find("rank 2"), std::string::npos) << error.what();
}

TEST(Links, MismatchNamesBothSides) {
  LinkPair pair;
  const Outbound outs[] = {{0, of_bytes(0, 0, OpKind::kBarrier), nullptr}};
  pair.one().exchange(outs, {}, Deadline::after(5s));
  const Inbound ins[] = {{1, of_bytes(0), nullptr, {}}};
  const auto error = error_of([&] { pair.zero->exchange({}, ins, Deadline::after(5s)); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_NE(std::string(error.what()).find("rank 0 called all_reduce #1"), std::string::npos);
  EXPECT_NE(std::string(error.what()).find("rank 1 called barrier #1"), std::string::npos);
}

/// Rank 0 with bare descriptors to ranks 1 and 2.
struct LinksOfThree {
  LinksOfThree() {
    std::vector<UniqueFd> sockets(3);
    for (const size_t peer : {1, 2}) {
      int fds[2];
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
      sockets[peer].reset(fds[0]);
      raw[peer].reset(fds[1]);
    }
    zero = std::make_unique<Links>(0, std::move(sockets), name_of, 0);
  }
  void send(size_t from, const Frame& frame) {
    EXPECT_EQ(::send(raw[from].get(), &frame, sizeof frame, 0), ssize_t{kFrameBytes});
  }
  std::unique_ptr<Links> zero;
  std::array<UniqueFd, 3> raw;
};

TEST(Links, WhoIsNotAwaitedAndCalledSomethingElseIsNamed) {
  LinksOfThree three;
  three.send(2, of_bytes(0, 0, OpKind::kReduce));
  const Inbound ins[] = {{1, of_bytes(0), nullptr, {}}};
  const auto error = error_of([&] { three.zero->exchange({}, ins, Deadline::after(20s)); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_NE(std::string(error.what()).find("rank 2 called reduce #1"), std::string::npos)
      << error.what();
}

TEST(Links, WhoIsNotAwaitedAndAheadOrGoneIsNoError) {
  LinksOfThree three;
  Frame later = of_bytes(0, 0, OpKind::kBarrier);
  later.operation.sequence = 2;
  three.send(2, later);
  three.raw[2].reset();
  std::thread peer([&] {
    std::this_thread::sleep_for(50ms);
    three.send(1, of_bytes(0));
  });
  const Inbound ins[] = {{1, of_bytes(0), nullptr, {}}};
  three.zero->exchange({}, ins, Deadline::after(20s));
  peer.join();
  const Inbound next[] = {{2, later, nullptr, {}}};
  three.zero->exchange({}, next, Deadline::after(20s));
  const auto error = error_of([&] { three.zero->exchange({}, next, Deadline::after(20s)); });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
}

TEST(Links, GarbageIsCorrupt) {
  LinkPair pair;
  const auto garbage = pattern(200, 1);
  ASSERT_EQ(::send(pair.raw.get(), garbage.data(), garbage.size(), 0), 200);
  const Inbound ins[] = {{1, of_bytes(0), nullptr, {}}};
  const auto error = error_of([&] { pair.zero->exchange({}, ins, Deadline::after(5s)); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
}

TEST(Links, ASilentPeerIsNamedAndWaitingCostsNoCore) {
  LinkPair pair;
  const auto cpu_ms = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
  };
  const auto before = cpu_ms();
  const Inbound ins[] = {{1, of_bytes(0), nullptr, {}}};
  const auto error = error_of([&] { pair.zero->exchange({}, ins, Deadline::after(600ms), 50us); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_NE(std::string(error.what()).find("rank 1 did not come"), std::string::npos);
  EXPECT_LT(cpu_ms() - before, 60);
}

TEST(Links, APeerThatTricklesIsTimedOut) {
  LinkPair pair;
  std::atomic<bool> stop = false;
  std::thread other([&] {
    const Frame frame = of_bytes(1'000'000);
    ::send(pair.raw.get(), &frame, sizeof frame, 0);
    while (!stop) {
      ::send(pair.raw.get(), "x", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(5ms);
    }
  });
  std::vector<uint8_t> got(1'000'000);
  const Inbound ins[] = {{1, of_bytes(1'000'000), got.data(), {}}};
  const auto error = error_of([&] { pair.zero->exchange({}, ins, Deadline::after(200ms)); });
  stop = true;
  other.join();
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
}

TEST(Links, APeerThatDoesNotReadIsNamed) {
  LinkPair pair;
  const std::vector<uint8_t> data(50'000'000);
  const Outbound outs[] = {{1, of_bytes(50'000'000), data.data()}};
  const auto error = error_of([&] { pair.zero->exchange(outs, {}, Deadline::after(200ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_NE(std::string(error.what()).find("rank 1 did not take"), std::string::npos);
}

TEST(Links, AHalfMessageAndThenTheEndIsAPeerLost) {
  LinkPair pair;
  const Frame frame = of_bytes(100);
  ASSERT_EQ(::send(pair.raw.get(), &frame, sizeof frame, 0), static_cast<ssize_t>(sizeof frame));
  ASSERT_EQ(::send(pair.raw.get(), "half", 4, 0), 4);
  pair.raw.reset();
  std::vector<uint8_t> got(100);
  const Inbound ins[] = {{1, frame, got.data(), {}}};
  const auto error = error_of([&] { pair.zero->exchange({}, ins, Deadline::after(5s)); });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_NE(std::string(error.what()).find("rank 1: closed the connection after 4 of 100 bytes"),
            std::string::npos);
}

// The end comes with the last data: no further event reports it.
TEST(Links, AnEndRightBehindAMessageIsNotMissed) {
  LinkPair pair;
  const Frame frame = of_bytes(0);
  const Inbound ins[] = {{1, frame, nullptr, {}}};
  std::thread other([&] {
    std::array<Frame, 2> twice{frame, frame};
    EXPECT_EQ(::send(pair.raw.get(), twice.data(), sizeof twice - 1, 0),
              static_cast<ssize_t>(sizeof twice - 1));
    pair.raw.reset();
  });
  other.join();
  pair.zero->exchange({}, ins, Deadline::after(5s));
  const auto error = error_of([&] { pair.zero->exchange({}, ins, Deadline::after(5s)); });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
}

TEST(Links, ShutDownWakesThePeer) {
  LinkPair pair;
  Links& one = pair.one();
  std::thread other([&] { pair.zero->shut_down(); });
  const Inbound ins[] = {{0, of_bytes(0), nullptr, {}}};
  const auto error = error_of([&] { one.exchange({}, ins, Deadline::after(20s)); });
  other.join();
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
}

}  // namespace
}  // namespace lockstep::tcp
