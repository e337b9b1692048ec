#include "lockstep/comm/native/tcp/pipes.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <numeric>
#include <thread>

#include "lockstep/base/error.h"

namespace lockstep::tcp {
namespace {

struct PipePair {
  PipePair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    std::vector<UniqueFd> first(2);
    std::vector<UniqueFd> second(2);
    first[1].reset(fds[0]);
    second[0].reset(fds[1]);
    const auto name = [](int rank) { return "rank " + std::to_string(rank); };
    zero = std::make_unique<Pipes>(std::move(first), name, 0);
    one = std::make_unique<Pipes>(std::move(second), name, 1);
  }
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

TEST(Pipes, TagsMayBeTakenInAnyOrder) {
  PipePair pair;
  const std::vector<int32_t> data{1, 2, 3, 4};
  for (const int tag : {1, 2, 2, 3}) {
    std::vector<int32_t> letter = data;
    letter[0] = tag;
    pair.zero->send(1, tag, letter.data(), 4, DType::kInt32, Deadline::after(5s));
  }
  for (const int tag : {3, 2, 1, 2}) {
    std::vector<int32_t> got(4);
    pair.one->recv(0, tag, got.data(), 4, DType::kInt32, Deadline::after(5s));
    EXPECT_EQ(got, (std::vector<int32_t>{tag, 2, 3, 4}));
  }
}

TEST(Pipes, LargeLettersBothWays) {
  PipePair pair;
  std::vector<int64_t> data(1'000'000);
  std::iota(data.begin(), data.end(), 5);
  const auto count = static_cast<int64_t>(data.size());
  std::vector<int64_t> at_zero(data.size());
  std::vector<int64_t> at_one(data.size());
  std::thread threads[] = {
      std::thread(
          [&] { pair.zero->send(1, 0, data.data(), count, DType::kInt64, Deadline::after(20s)); }),
      std::thread(
          [&] { pair.one->send(0, 0, data.data(), count, DType::kInt64, Deadline::after(20s)); }),
      std::thread([&] {
        pair.zero->recv(1, 0, at_zero.data(), count, DType::kInt64, Deadline::after(20s));
      }),
      std::thread([&] {
        pair.one->recv(0, 0, at_one.data(), count, DType::kInt64, Deadline::after(20s));
      })};
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(at_zero, data);
  EXPECT_EQ(at_one, data);
}

TEST(Pipes, AnotherCountOrTypeIsAMismatch) {
  PipePair pair;
  const int32_t data[2] = {};
  pair.zero->send(1, 0, data, 2, DType::kInt32, Deadline::after(5s));
  int32_t got[3];
  EXPECT_EQ(pipe_error([&] { pair.one->recv(0, 0, got, 3, DType::kInt32, Deadline::after(5s)); }),
            ErrorCode::kMismatch);
}

TEST(Pipes, SilenceTimesOutAndShutDownWakes) {
  PipePair pair;
  int32_t got = 0;
  EXPECT_EQ(
      pipe_error([&] { pair.one->recv(0, 0, &got, 1, DType::kInt32, Deadline::after(50ms)); }),
      ErrorCode::kTimeout);
  std::thread other([&] { pair.zero->shut_down(); });
  EXPECT_EQ(pipe_error([&] { pair.one->recv(0, 0, &got, 1, DType::kInt32, Deadline::after(20s)); }),
            ErrorCode::kPeerLost);
  other.join();
}

}  // namespace
}  // namespace lockstep::tcp
