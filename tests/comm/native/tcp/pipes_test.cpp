#include "lockstep/comm/native/tcp/pipes.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"

namespace lockstep::tcp {
namespace {

/// Accepts any message.
struct AnySink : MessageSink {
  void look() override {}
  Destination begin(const MessageHeader& came) override {
    header = came;
    data.resize(static_cast<size_t>(came.bytes()));
    return {data.data(), Deadline::after(20s)};
  }
  void end() override { whole = true; }
  std::string wanted() override { return "a message"; }

  MessageHeader header;
  std::vector<std::byte> data;
  bool whole = false;
};

struct PipePair {
  PipePair() {
    Peers::Group group;
    group.name = "g";
    group.world_ranks = {0, 1};
    std::shared_ptr<Reception> receptions[2];
    for (const int rank : {0, 1}) {
      receptions[rank] = std::make_shared<Reception>(rank, "127.0.0.1", "");
      group.endpoints.push_back(receptions[rank]->endpoint());
    }
    const auto name = [](int rank) { return "rank " + std::to_string(rank); };
    for (const int rank : {0, 1}) {
      group.rank = rank;
      group.reception = receptions[rank];
      peers[rank] = std::make_unique<Peers>(group);
      (rank == 0 ? zero : one) = std::make_unique<Pipes>(*peers[rank], 2, name, rank);
    }
  }
  /// Rank 0's end of a connection, for arbitrary bytes.
  int open_raw() {
    raw = peers[0]->connect(1, Deadline::after(20s));
    return raw.get();
  }
  /// Makes the connection with a message that does not matter.
  void open() const {
    EXPECT_TRUE(zero->send(1, {.tag = 99}, nullptr, Deadline::after(20s)));
    struct Ignored : MessageSink {
      void look() override {}
      Destination begin(const MessageHeader&) override { return {nullptr, Deadline::after(20s)}; }
      void end() override {}
      std::string wanted() override { return "nothing"; }
    } ignored;
    EXPECT_TRUE(receive(ignored));
  }
  bool receive(MessageSink& sink, Deadline deadline = Deadline::after(20s)) const {
    return one->receive(0, sink, deadline, {});
  }
  UniqueFd raw;
  std::unique_ptr<Peers> peers[2];
  std::unique_ptr<Pipes> zero;
  std::unique_ptr<Pipes> one;
};

ErrorCode pipe_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(Pipes, MessagesArriveInTheirOrderWithTheirTags) {
  PipePair pair;
  for (const int tag : {1, 2, 3}) {
    const int32_t message[] = {tag, 4};
    const MessageHeader header{.count = 2, .tag = tag, .dtype = DType::kInt32};
    if (tag == 2) {
      EXPECT_TRUE(pair.zero->try_send(1, header, message));
    } else {
      EXPECT_TRUE(pair.zero->send(1, header, message, Deadline::after(5s)));
    }
  }
  for (const int tag : {1, 2, 3}) {
    AnySink sink;
    EXPECT_TRUE(pair.receive(sink));
    EXPECT_TRUE(sink.whole);
    EXPECT_EQ(sink.header.tag, tag);
    EXPECT_EQ(static_cast<int>(sink.data.front()), tag);
  }
}

TEST(Pipes, LargeMessagesBothWays) {
  PipePair pair;
  std::vector<int64_t> data(1'000'000);
  std::iota(data.begin(), data.end(), 5);
  const MessageHeader header{.count = 1'000'000, .dtype = DType::kInt64};
  EXPECT_FALSE(pair.zero->try_send(1, header, data.data()));
  AnySink at_zero;
  AnySink at_one;
  std::thread threads[] = {
      std::thread([&] { pair.zero->send(1, header, data.data(), Deadline::after(20s)); }),
      std::thread([&] { pair.one->send(0, header, data.data(), Deadline::after(20s)); }),
      std::thread([&] { pair.zero->receive(1, at_zero, Deadline::after(20s), {}); }),
      std::thread([&] { pair.receive(at_one); })};
  for (auto& thread : threads) thread.join();
  for (const AnySink* sink : {&at_zero, &at_one})
    EXPECT_EQ(std::memcmp(sink->data.data(), data.data(), sink->data.size()), 0);
}

TEST(Pipes, WhatTheKernelTookOfAMessageIsNotSentTwice) {
  PipePair pair;
  pair.open();
  const std::vector<std::byte> data(8000, std::byte{7});
  const MessageHeader header{.count = 8000};
  int sent = 0;
  while (pair.zero->try_send(1, header, data.data())) ++sent;
  std::thread rest([&] { pair.zero->send(1, header, data.data(), Deadline::after(20s)); });
  for (int i = 0; i <= sent; ++i) {
    AnySink sink;
    EXPECT_TRUE(pair.receive(sink));
    EXPECT_EQ(sink.data, data);
  }
  rest.join();
}

TEST(Pipes, SilenceIsNoErrorAlsoInTheMiddleOfAHeadAndShutDownWakes) {
  PipePair pair;
  AnySink sink;
  EXPECT_FALSE(pair.receive(sink, Deadline::after(50ms)));
  const int raw = pair.open_raw();
  EXPECT_FALSE(pair.receive(sink, Deadline::after(50ms)));
  const MessageFrame message{MessageFrame::kMagic, 3, 0, DType::kUint8, {}};
  EXPECT_EQ(::send(raw, &message, 10, 0), 10);
  EXPECT_FALSE(pair.receive(sink, Deadline::after(50ms)));
  const auto* rest = reinterpret_cast<const char*>(&message) + 10;
  EXPECT_EQ(::send(raw, rest, kMessageFrameBytes - 10, 0),
            static_cast<ssize_t>(kMessageFrameBytes - 10));
  EXPECT_TRUE(pair.receive(sink));
  EXPECT_EQ(sink.header.tag, 3);
  std::thread other([&] { ::shutdown(raw, SHUT_RDWR); });
  EXPECT_EQ(pipe_error([&] { pair.receive(sink); }), ErrorCode::kPeerLost);
  other.join();
}

TEST(Pipes, TheFirstMessageMakesTheConnectionAndTheFirstWait) {
  PipePair pair;
  const int32_t number = 5;
  const MessageHeader header{.count = 1, .dtype = DType::kInt32};
  EXPECT_FALSE(pair.zero->try_send(1, header, &number)) << "it takes waiting";
  EXPECT_TRUE(pair.zero->send(1, header, &number, Deadline::after(20s)));
  EXPECT_TRUE(pair.zero->try_send(1, header, &number));
  AnySink sink;
  EXPECT_TRUE(pair.receive(sink));
  EXPECT_TRUE(pair.receive(sink));
}

/// Noticed by the connection that the waiting rank itself has made.
TEST(Pipes, APeerThatLeavesBeforeItsFirstMessageIsKnownAtOnce) {
  for (const bool before : {true, false}) {
    PipePair pair;
    const auto leave = [&] {
      pair.zero.reset();
      pair.peers[0].reset();
    };
    if (before) leave();
    std::thread other([&] {
      std::this_thread::sleep_for(100ms);
      if (!before) leave();
    });
    AnySink sink;
    const auto start = Deadline::Clock::now();
    EXPECT_EQ(pipe_error([&] { pair.receive(sink); }), ErrorCode::kPeerLost);
    EXPECT_LT(Deadline::Clock::now() - start, 5s);
    other.join();
  }
}

/// Its earlier messages are read.
TEST(Pipes, MessagesOfAPeerThatHasLeftAreRead) {
  PipePair pair;
  const int32_t number = 5;
  const MessageHeader header{.count = 1, .dtype = DType::kInt32};
  EXPECT_TRUE(pair.zero->send(1, header, &number, Deadline::after(20s)));
  pair.zero.reset();
  pair.peers[0].reset();
  AnySink sink;
  EXPECT_TRUE(pair.receive(sink));
  EXPECT_EQ(pipe_error([&] { pair.receive(sink); }), ErrorCode::kPeerLost);
}

TEST(Pipes, ShutDownWakesWhoWaitsForAFirstMessage) {
  PipePair pair;
  std::thread other([&] {
    std::this_thread::sleep_for(100ms);
    pair.one->shut_down();
  });
  AnySink sink;
  EXPECT_EQ(pipe_error([&] { pair.receive(sink); }), ErrorCode::kPeerLost);
  other.join();
}

}  // namespace
}  // namespace lockstep::tcp
