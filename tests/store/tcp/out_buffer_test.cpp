#include "lockstep/store/tcp/out_buffer.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>

#include "lockstep/base/unique_fd.h"

namespace lockstep {
namespace {

struct Sockets {
  Sockets() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
    sender = UniqueFd(ends[0]);
    receiver = UniqueFd(ends[1]);
  }
  /// What has arrived, at most `most` bytes.
  std::string take(size_t most) const {
    std::string bytes(most, ' ');
    const ssize_t got = ::recv(receiver.get(), bytes.data(), most, MSG_DONTWAIT);
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
  }

  UniqueFd sender;
  UniqueFd receiver;
};

/// No two neighbouring pieces of what a socket holds are equal.
std::string numbers(size_t size) {
  std::string block;
  for (int i = 0; block.size() < 100'003; ++i) block += std::to_string(i) + ' ';
  std::string bytes;
  while (bytes.size() < size) bytes += block;
  bytes.resize(size);
  return bytes;
}

TEST(OutBuffer, WhatTheSocketDoesNotTakeGoesOutLaterInOrder) {
  const Sockets sockets;
  OutBuffer buffer;
  const std::string all = numbers(20 << 20);
  const auto piece = [&](size_t from, size_t to) {
    return std::string_view(all).substr(from << 20, (to - from) << 20);
  };
  ASSERT_TRUE(buffer.put(sockets.sender.get(), piece(0, 8)));
  EXPECT_GT(buffer.size(), 7U << 20);
  buffer.keep(piece(8, 12));
  std::string arrived = sockets.take(6 << 20);
  ASSERT_TRUE(buffer.put(sockets.sender.get(), piece(12, 20)));
  while (buffer.size() > 0) {
    const std::string bytes = sockets.take(1 << 16);
    ASSERT_FALSE(bytes.empty()) << arrived.size() << " bytes have arrived";
    arrived += bytes;
    ASSERT_TRUE(buffer.flush(sockets.sender.get()));
    ASSERT_LE(buffer.capacity(), 3 * all.size());
  }
  for (std::string bytes; !(bytes = sockets.take(1 << 20)).empty();) arrived += bytes;
  EXPECT_TRUE(arrived == all) << arrived.size() << " bytes";
  EXPECT_LT(buffer.capacity(), 100U);
}

TEST(OutBuffer, ALostConnectionIsReportedWithErrno) {
  Sockets sockets;
  OutBuffer buffer;
  ASSERT_TRUE(buffer.put(sockets.sender.get(), numbers(8 << 20)));
  sockets.receiver.reset();
  errno = 0;
  EXPECT_FALSE(buffer.flush(sockets.sender.get()));
  EXPECT_TRUE(errno == EPIPE || errno == ECONNRESET) << errno;
  EXPECT_GT(buffer.size(), 0U);
  buffer.clear();
  EXPECT_EQ(buffer.size(), 0U);
}

}  // namespace
}  // namespace lockstep
