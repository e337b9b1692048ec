#include "lockstep/comm/message_matcher.h"

#include "lockstep/base/literals.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

/// Messages that rank 0 receives from rank 1.
struct Post {
  MessageMatcher matcher{"rank 1", "rank 0"};

  struct Recv {
    Recv(int tag, int64_t count) : data(static_cast<size_t>(count)) {
      slot.wanted = {.count = count, .tag = tag};
      slot.data = data.data();
    }
    std::vector<std::byte> data;
    MessageMatcher::Slot slot{.wanted = {}, .data = nullptr, .deadline = Deadline::after(0s)};
  };

  MessageMatcher::Slot* come(int tag, int64_t count, std::byte value) {
    matcher.look();
    const auto destination = matcher.begin({.count = count, .tag = tag}, Deadline::after(0s));
    std::memset(destination.data, static_cast<int>(value), static_cast<size_t>(count));
    return matcher.end();
  }
};

TEST(MessageMatcherTest, EachGoesToTheFirstRecvWithItsTag) {
  Post post;
  Post::Recv two(2, 3), one(1, 4), other_one(1, 4);
  for (auto* recv : {&two, &one, &other_one}) EXPECT_FALSE(post.matcher.post(&recv->slot));
  EXPECT_EQ(post.come(1, 4, std::byte{1}), &one.slot);
  EXPECT_EQ(post.come(1, 4, std::byte{2}), &other_one.slot);
  EXPECT_EQ(post.come(2, 3, std::byte{3}), &two.slot);
  EXPECT_EQ(one.data.back(), std::byte{1});
  EXPECT_EQ(other_one.data.back(), std::byte{2});
  EXPECT_EQ(two.data.back(), std::byte{3});
}

TEST(MessageMatcherTest, ThoseThatComeEarlyAreKeptAndKeepTheirOrder) {
  Post post;
  for (const int value : {1, 2}) EXPECT_EQ(post.come(7, 3, std::byte(value)), nullptr);
  EXPECT_EQ(post.matcher.told_kept(), "; of rank 1 there are messages with tag 7");
  Post::Recv five(5, 4), seven(7, 3), other_seven(7, 3);
  EXPECT_FALSE(post.matcher.post(&five.slot));
  EXPECT_TRUE(post.matcher.post(&seven.slot));
  EXPECT_TRUE(post.matcher.post(&other_seven.slot));
  EXPECT_EQ(seven.data.back(), std::byte{1});
  EXPECT_EQ(other_seven.data.back(), std::byte{2});
  EXPECT_EQ(post.matcher.told_kept(), "");
}

/// In time quadratic in their number, it would take longer than any test may.
TEST(MessageMatcherTest, ThreeHundredThousandInTheOtherOrderAreFound) {
  constexpr int kMany = 300'000;
  Post post;
  for (int tag = 0; tag < kMany; ++tag) EXPECT_EQ(post.come(tag, 1, std::byte(tag)), nullptr);
  EXPECT_EQ(post.matcher.told_kept(),
            "; of rank 1 there are messages with tags 0, 1, 2, 3, 4, 5, 6, 7, ...");
  for (int tag = kMany - 1; tag >= 0; --tag) {
    Post::Recv recv(tag, 1);
    ASSERT_TRUE(post.matcher.post(&recv.slot));
    ASSERT_EQ(recv.data.back(), std::byte(tag));
  }
  std::vector<std::unique_ptr<Post::Recv>> recvs;
  for (int tag = 0; tag < kMany; ++tag) {
    recvs.push_back(std::make_unique<Post::Recv>(tag, 1));
    ASSERT_FALSE(post.matcher.post(&recvs.back()->slot));
  }
  for (int tag = kMany - 1; tag >= 0; --tag) {
    ASSERT_EQ(post.come(tag, 1, std::byte(tag)), &recvs[static_cast<size_t>(tag)]->slot);
  }
}

TEST(MessageMatcherTest, OneThatIsAskedForWhileItComesIsNotKept) {
  Post post;
  const auto destination = post.matcher.begin({.count = 1, .tag = 7}, Deadline::after(0s));
  Post::Recv recv(7, 1);
  EXPECT_FALSE(post.matcher.post(&recv.slot));
  *destination.data = std::byte{9};
  EXPECT_EQ(post.matcher.end(), &recv.slot);
  EXPECT_EQ(recv.data.back(), std::byte{9});
}

TEST(MessageMatcherTest, ARecvThatIsTakenBackGetsNothingUnlessItsMessageIsComing) {
  Post post;
  Post::Recv late(7, 1), next(7, 1);
  EXPECT_FALSE(post.matcher.post(&late.slot));
  EXPECT_TRUE(post.matcher.withdraw(&late.slot));
  EXPECT_FALSE(post.matcher.post(&next.slot));
  post.matcher.begin({.count = 1, .tag = 7}, Deadline::after(0s));
  EXPECT_FALSE(post.matcher.withdraw(&next.slot));
  EXPECT_EQ(post.matcher.end(), &next.slot);
}

TEST(MessageMatcherTest, AnotherCountIsAMismatchKeptOrNot) {
  Post post;
  Post::Recv seven(7, 2), five(5, 2);
  EXPECT_FALSE(post.matcher.post(&five.slot));
  EXPECT_EQ(error_of([&] { post.come(5, 4, std::byte{3}); }).code(), ErrorCode::kMismatch);
  EXPECT_EQ(post.come(7, 3, std::byte{1}), nullptr);
  EXPECT_FALSE(post.matcher.post(&seven.slot));
  EXPECT_EQ(std::string(error_of([&] { post.matcher.look(); }).what()),
            "rank 1 sent 3 uint8, rank 0 called recv for 2 uint8 (tag 7)");
}

TEST(MessageMatcherTest, NoMoreIsKeptThanThereIsRoomFor) {
  Post post;
  EXPECT_EQ(post.come(7, 1, std::byte{1}), nullptr);
  const Error error = error_of(
      [&] { post.matcher.begin({.count = kMaxEarlyBytes, .tag = 6}, Deadline::after(0s)); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_EQ(std::string(error.what()),
            "rank 1 sent 268435456 uint8, tag 6 first, and rank 0 has no room to keep it: receive "
            "messages of this size in the order in which they are sent");
}

}  // namespace
}  // namespace lockstep
