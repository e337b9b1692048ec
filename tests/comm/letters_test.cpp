#include "lockstep/comm/letters.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "lockstep/comm/native/tcp/pipes.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

/// A group of two, of which rank 1 has sent what is in `sent`.
struct Post {
  GroupSpec spec = [] {
    GroupSpec made;
    made.size = 2;
    made.world_ranks = {0, 1};
    return made;
  }();
  Letters letters{spec};
  std::deque<std::vector<std::byte>> sent;

  void send(int tag, int64_t count, std::byte value) {
    const Envelope envelope{.count = count, .tag = tag};
    sent.emplace_back(sizeof envelope);
    std::memcpy(sent.back().data(), &envelope, sizeof envelope);
    if (count <= 16) sent.emplace_back(static_cast<size_t>(count), value);
  }
  std::byte take(int tag, int64_t count) {
    std::vector<std::byte> data(static_cast<size_t>(count));
    const auto receive = [&](int64_t bytes) {
      auto next = std::move(sent.front());
      sent.pop_front();
      EXPECT_EQ(static_cast<int64_t>(next.size()), bytes);
      return next;
    };
    const auto receive_into = [&](void* to, int64_t bytes) {
      std::memcpy(to, receive(bytes).data(), static_cast<size_t>(bytes));
    };
    letters.take(spec, 1, {.count = count, .tag = tag}, data.data(), receive, receive_into);
    return data.back();
  }
};

TEST(LettersTest, ThoseThatComeEarlyAreKeptAndKeepTheirOrder) {
  Post post;
  post.send(7, 3, std::byte{1});
  post.send(7, 3, std::byte{2});
  post.send(5, 4, std::byte{3});
  EXPECT_EQ(post.take(5, 4), std::byte{3});
  EXPECT_EQ(post.take(7, 3), std::byte{1});
  EXPECT_EQ(post.take(7, 3), std::byte{2});
}

TEST(LettersTest, AnotherCountIsAMismatchKeptOrNot) {
  Post post;
  post.send(7, 3, std::byte{1});
  post.send(5, 4, std::byte{3});
  EXPECT_EQ(error_of([&] { post.take(5, 2); }).code(), ErrorCode::kMismatch);
  EXPECT_EQ(std::string(error_of([&] { post.take(7, 2); }).what()),
            "rank 1 sent 3 uint8, rank 0 called recv for 2 uint8 (tag 7)");
}

TEST(LettersTest, NoMoreIsKeptThanThereIsRoomFor) {
  Post post;
  post.send(7, 1, std::byte{1});
  post.send(6, tcp::kMaxEarlyBytes, std::byte{});
  const Error error = error_of([&] { post.take(5, 4); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_EQ(std::string(error.what()),
            "rank 1 sent 268435456 uint8, tag 6 first, and rank 0 has no room to keep it: receive "
            "letters of this size in the order in which they are sent");
}

}  // namespace
}  // namespace lockstep
