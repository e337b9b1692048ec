#include "lockstep/data/prefetcher.h"

#include "lockstep/base/literals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

namespace lockstep {
namespace {

Deadline soon() {
  return Deadline::after(30s);
}

TEST(Prefetcher, GivesItemsInOrder) {
  for (const int threads : {1, 4}) {
    Prefetcher<int64_t> items(threads, 3);
    items.start(1000, [](int64_t i) { return i * i; });
    for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(items.next(soon()), i * i);
    EXPECT_EQ(items.next(soon()), std::nullopt);
    EXPECT_EQ(items.next(soon()), std::nullopt);
  }
}

TEST(Prefetcher, NothingBeforeTheFirstRoundOrInAnEmptyOne) {
  Prefetcher<int> items(2, 2);
  EXPECT_EQ(items.next(soon()), std::nullopt);
  items.start(0, [](int64_t) { return 1; });
  EXPECT_EQ(items.next(soon()), std::nullopt);
}

TEST(Prefetcher, StaysWithinItsDepth) {
  std::atomic<int64_t> made = 0;
  std::atomic<int64_t> most_ahead = 0;
  int64_t taken = 0;
  Prefetcher<int> items(3, 2);
  items.start(200, [&](int64_t item) {
    ++made;
    (void)item;
    return 0;
  });
  while (items.next(soon())) {
    // Before next() returned item `taken`, items up to taken + depth could have been claimed.
    most_ahead = std::max<int64_t>(most_ahead, made - taken);
    ++taken;
  }
  EXPECT_EQ(taken, 200);
  EXPECT_LE(most_ahead, 3);
}

TEST(Prefetcher, ErrorComesAtItsItemAndEndsTheRound) {
  Prefetcher<int64_t> items(4, 4);
  const auto make = [](int64_t i) {
    if (i == 5) throw Error(ErrorCode::kCorrupt, "item five");
    return i;
  };
  for (int round = 0; round < 20; ++round) {
    items.start(100, make);
    for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(items.next(soon()), i);
    EXPECT_THROW(items.next(soon()), Error);
    EXPECT_EQ(items.next(soon()), std::nullopt);
  }
}

TEST(Prefetcher, AFollowersFirstItemsAreMadeBeforeItsRoundBegins) {
  for (const int threads : {1, 3}) {
    std::latch ahead(2);
    Prefetcher<int64_t> items(threads, 2);
    items.start(5, [](int64_t i) { return i; });
    items.follow(4, [&](int64_t i) {
      if (i < 2) ahead.count_down();
      return 100 + i;
    });
    for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(items.next(soon()), i);
    EXPECT_EQ(items.next(soon()), std::nullopt) << "the round ends where it did";
    ahead.wait();
    ASSERT_TRUE(items.go_on());
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(items.next(soon()), 100 + i);
    EXPECT_EQ(items.next(soon()), std::nullopt);
    EXPECT_FALSE(items.go_on()) << "one follower";
  }
}

TEST(Prefetcher, GoesOnOnlyWhereARoundWasTakenWhole) {
  Prefetcher<int64_t> items(2, 4);
  EXPECT_FALSE(items.go_on());
  items.start(3, [](int64_t i) { return i; });
  items.follow(3, [](int64_t i) { return 100 + i; });
  EXPECT_EQ(items.next(soon()), 0);
  EXPECT_FALSE(items.go_on());
  items.start(2, [](int64_t i) { return 200 + i; });
  EXPECT_EQ(items.next(soon()), 200);
  EXPECT_EQ(items.next(soon()), 201);
  EXPECT_FALSE(items.go_on()) << "start() drops it";
}

TEST(Prefetcher, AnErrorEndsTheFollowerToo) {
  Prefetcher<int64_t> items(3, 4);
  for (int round = 0; round < 50; ++round) {
    items.start(3, [](int64_t i) {
      if (i == 2) throw Error(ErrorCode::kCorrupt, "item two");
      return i;
    });
    items.follow(9, [](int64_t) { return -1; });
    EXPECT_EQ(items.next(soon()), 0);
    EXPECT_EQ(items.next(soon()), 1);
    EXPECT_THROW(items.next(soon()), Error);
    EXPECT_EQ(items.next(soon()), std::nullopt);
    EXPECT_FALSE(items.go_on());
    items.follow(3, [](int64_t i) { return 100 + i; });
    ASSERT_TRUE(items.go_on());
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(items.next(soon()), 100 + i) << "none of the old one";
  }
}

TEST(Prefetcher, NewRoundDropsTheOldOne) {
  Prefetcher<int64_t> items(4, 4);
  for (int64_t round = 0; round < 200; ++round) {
    items.start(50, [round](int64_t i) { return round * 1000 + i; });
    for (int64_t i = 0; i < round % 7; ++i) EXPECT_EQ(items.next(soon()), round * 1000 + i);
  }
}

TEST(Prefetcher, EndsWithItemsLeft) {
  for (int i = 0; i < 50; ++i) {
    Prefetcher<int64_t> items(3, 2);
    items.start(100, [](int64_t item) { return item; });
    if (i % 2 == 1) items.next(soon());
  }
}

TEST(Prefetcher, SlowItemIsATimeoutAndCanBeWaitedForAgain) {
  std::latch go(1);
  Prefetcher<int> items(1, 1);
  items.start(1, [&](int64_t) {
    go.wait();
    return 7;
  });
  try {
    items.next(Deadline::after(10ms));
    ADD_FAILURE() << "no timeout";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_NE(std::string(error.what()).find("item 0 of 1"), std::string::npos);
  }
  go.count_down();
  EXPECT_EQ(items.next(soon()), 7);
}

bool becomes_ready(const Prefetcher<int64_t>& items, int64_t count) {
  const Deadline deadline = soon();
  while (!items.ready(count) && !deadline.passed()) std::this_thread::sleep_for(1ms);
  return items.ready(count);
}

TEST(Prefetcher, KnowsForHowManyItemsItWouldNotWait) {
  std::latch go(1);
  Prefetcher<int64_t> items(2, 3);
  items.start(5, [&](int64_t item) {
    if (item == 2) go.wait();
    return item;
  });
  EXPECT_EQ(items.next(soon()), 0);
  EXPECT_TRUE(becomes_ready(items, 1));
  EXPECT_FALSE(items.ready(2));
  go.count_down();
  EXPECT_TRUE(becomes_ready(items, 3));
  EXPECT_FALSE(items.ready(4)) << "as many are not made ahead";
  for (int64_t item = 1; item < 5; ++item) EXPECT_EQ(items.next(soon()), item);
  EXPECT_TRUE(items.ready(2)) << "the end of the round";
}

TEST(Prefetcher, MeasuresTheWait) {
  Prefetcher<int> items(1, 1);
  items.start(1, [](int64_t) {
    std::this_thread::sleep_for(30ms);
    return 7;
  });
  items.next(soon());
  EXPECT_GT(items.wait_seconds(), 0.0);
}

}  // namespace
}  // namespace lockstep
