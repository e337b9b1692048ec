// Waits for keys, and counters, in stores in memory and over TCP.

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "lockstep/base/literals.h"
#include "lockstep/store.h"
#include "tests/store/helpers.h"
#include "tests/store/store_kinds.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::mentions;
using testing::run_threads;
using testing::soon;

Deadline short_while() {
  return Deadline::after(30ms);
}

class WaitingStoreTest : public ::testing::TestWithParam<testing::StoreKind<Store>> {
 protected:
  testing::StoreSite<Store> site_ = GetParam().make();
  std::shared_ptr<Store> client_ = site_.connect();
  std::shared_ptr<Store> other_client_ = site_.connect();
  Store& store_ = *client_;
  Store& other_ = *other_client_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, WaitingStoreTest,
                         ::testing::ValuesIn(testing::waiting_store_kinds()),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(WaitingStoreTest, GetWaitsForTheKey) {
  auto got = std::async(std::launch::async, [&] { return other_.get("k", soon()); });
  EXPECT_EQ(got.wait_for(30ms), std::future_status::timeout);
  store_.set("k", "v", soon());
  EXPECT_EQ(got.get(), "v");
}

TEST_P(WaitingStoreTest, GetTimesOutNamingTheKeyAndStaysUsable) {
  const auto error = error_of([&] { store_.get("left/out", short_while()); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "left/out")) << error.what();
  store_.set("k", "v", soon());
  EXPECT_EQ(store_.get("k", soon()), "v");
  store_.set("left/out", "late", soon());
  EXPECT_EQ(store_.get("left/out", soon()), "late");
}

TEST_P(WaitingStoreTest, GetOfAPresentKeySucceedsEvenLate) {
  store_.set("k", "v", soon());
  EXPECT_EQ(store_.get("k", Deadline::after(-1s)), "v");
}

TEST_P(WaitingStoreTest, AddCounts) {
  EXPECT_EQ(store_.add("n", 5, soon()), 5);
  EXPECT_EQ(other_.add("n", -7, soon()), -2);
  EXPECT_EQ(store_.add("n", 0, soon()), -2);
  EXPECT_EQ(store_.get("n", soon()), "-2");
  store_.set("m", "40", soon());
  EXPECT_EQ(store_.add("m", 2, soon()), 42);
  store_.erase("m", soon());
  EXPECT_EQ(store_.add("m", 1, soon()), 1);
}

TEST_P(WaitingStoreTest, AddRefusesWhatIsNoCounter) {
  for (const char* held : {"", "x", "1x", " 1", "9223372036854775808"}) {
    store_.set("n", held, soon());
    const auto error = error_of([&] { store_.add("n", 1, soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(mentions(error, "'")) << error.what();
    EXPECT_EQ(store_.get("n", soon()), held);
  }
}

TEST_P(WaitingStoreTest, AddRefusesToOverflow) {
  store_.set("n", "9223372036854775807", soon());
  EXPECT_EQ(error_of([&] { store_.add("n", 1, soon()); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(store_.get("n", soon()), "9223372036854775807");
  EXPECT_EQ(store_.add("n", -1, soon()), 9223372036854775806);
}

TEST_P(WaitingStoreTest, AddIsAtomicAcrossThreads) {
  constexpr int kThreads = 8;
  constexpr int kAdds = 50;
  run_threads(kThreads, [&](int t) {
    for (int i = 0; i < kAdds; ++i) (t % 2 == 0 ? store_ : other_).add("n", 1, soon());
  });
  EXPECT_EQ(store_.add("n", 0, soon()), kThreads * kAdds);
}

TEST_P(WaitingStoreTest, AddAndCompareSetWakeWatchers) {
  store_.set("n", "5", soon());
  const auto version = other_.watch("n", 0, soon()).version;
  auto seen = std::async(std::launch::async, [&] { return other_.watch("n", version, soon()); });
  EXPECT_EQ(seen.wait_for(10ms), std::future_status::timeout);
  store_.add("n", 2, soon());
  EXPECT_EQ(seen.get().changes.at(0).value, "7");
  const auto next = other_.watch("n", 0, soon()).version;
  store_.compare_set("n", "7", "8", soon());
  EXPECT_EQ(other_.watch("n", next, soon()).changes.at(0).value, "8");
}

TEST_P(WaitingStoreTest, AddAndCompareSetMakeALeasedKeyAPlainOne) {
  EXPECT_TRUE(other_.set_with_lease("n", "1", 10min, soon()));
  EXPECT_EQ(store_.add("n", 4, soon()), 5);
  EXPECT_FALSE(other_.set_with_lease("n", "5", 10min, soon()));
  EXPECT_TRUE(other_.set_with_lease("k", "1", 10min, soon()));
  EXPECT_TRUE(store_.compare_set("k", "1", "5", soon()).swapped);
  EXPECT_FALSE(other_.set_with_lease("k", "5", 10min, soon()));
}

TEST_P(WaitingStoreTest, CompareSetSwapsOnlyWhatWasExpected) {
  auto swap = store_.compare_set("k", std::nullopt, "1", soon());
  EXPECT_TRUE(swap.swapped);
  EXPECT_EQ(swap.value, "1");
  swap = other_.compare_set("k", std::nullopt, "2", soon());
  EXPECT_FALSE(swap.swapped);
  EXPECT_EQ(swap.value, "1");
  swap = other_.compare_set("k", "0", "2", soon());
  EXPECT_FALSE(swap.swapped);
  EXPECT_EQ(swap.value, "1");
  swap = other_.compare_set("k", "1", "2", soon());
  EXPECT_TRUE(swap.swapped);
  EXPECT_EQ(swap.value, "2");
  EXPECT_EQ(store_.get("k", soon()), "2");
}

TEST_P(WaitingStoreTest, CompareSetTellsEmptyFromMissing) {
  auto swap = store_.compare_set("k", "", "x", soon());
  EXPECT_FALSE(swap.swapped);
  EXPECT_EQ(swap.value, std::nullopt);
  store_.set("k", "", soon());
  EXPECT_FALSE(store_.compare_set("k", std::nullopt, "x", soon()).swapped);
  EXPECT_TRUE(store_.compare_set("k", "", "x", soon()).swapped);
}

TEST_P(WaitingStoreTest, OneOfManyWinsACompareSet) {
  std::atomic<int> winners = 0;
  run_threads(8, [&](int t) {
    Store& store = t % 2 == 0 ? store_ : other_;
    winners += store.compare_set("leader", std::nullopt, std::to_string(t), soon()).swapped;
  });
  EXPECT_EQ(winners, 1);
}

TEST_P(WaitingStoreTest, CompareSetTakesTheLargestValues) {
  std::string value(static_cast<size_t>(kMaxValueBytes), 'v');
  store_.set("largest", value, soon());
  const std::string swapped(value.size(), 'w');
  EXPECT_TRUE(other_.compare_set("largest", value, swapped, soon()).swapped);
  value += 'v';
  EXPECT_THROW(store_.compare_set("k", value, "", soon()), Error);
  EXPECT_THROW(store_.compare_set("k", std::nullopt, value, soon()), Error);
  EXPECT_EQ(store_.try_get("k", soon()), std::nullopt);
}

TEST_P(WaitingStoreTest, CompareSetWakesWaiters) {
  auto got = std::async(std::launch::async, [&] { return other_.get("k", soon()); });
  store_.compare_set("k", std::nullopt, "v", soon());
  EXPECT_EQ(got.get(), "v");
}

TEST_P(WaitingStoreTest, SetManyAndLeasesWakeWaiters) {
  auto plain = std::async(std::launch::async, [&] { return other_.get("plain", soon()); });
  auto leased = std::async(std::launch::async, [&] { return other_.get("leased", soon()); });
  store_.set_many(std::vector<Store::KeyValue>{{"plain", "v"}}, soon());
  store_.set_with_lease("leased", "w", 10min, soon());
  EXPECT_EQ(plain.get(), "v");
  EXPECT_EQ(leased.get(), "w");
}

TEST_P(WaitingStoreTest, WaitReturnsWhenAllAreThere) {
  const std::vector<std::string> keys = {"a", "b", "c", "a"};
  auto done = std::async(std::launch::async, [&] { other_.wait(keys, soon()); });
  store_.set("c", "", soon());
  store_.set("a", "", soon());
  EXPECT_EQ(done.wait_for(30ms), std::future_status::timeout);
  store_.set("b", "", soon());
  done.get();
  other_.wait(keys, soon());
}

TEST_P(WaitingStoreTest, WaitForNothingReturnsAtOnce) {
  store_.wait({}, short_while());
  EXPECT_TRUE(store_.check({}, soon()));
}

TEST_P(WaitingStoreTest, WaitTimesOutNamingTheMissingOnly) {
  store_.set("here", "", soon());
  const std::vector<std::string> keys = {"gone1", "here", "gone2"};
  const auto error = error_of([&] { store_.wait(keys, short_while()); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "gone1") && mentions(error, "gone2")) << error.what();
  EXPECT_FALSE(mentions(error, "here")) << error.what();
  EXPECT_TRUE(mentions(error, "2 of 3")) << error.what();
}

TEST_P(WaitingStoreTest, LongListsOfMissingKeysAreCut) {
  std::vector<std::string> keys;
  keys.reserve(1000);
  for (int i = 0; i < 1000; ++i) keys.push_back("key" + std::to_string(i));
  const auto error = error_of([&] { store_.wait(keys, short_while()); });
  EXPECT_TRUE(mentions(error, "key7' and 992 more")) << error.what();
}

TEST_P(WaitingStoreTest, WaitNeedsAllKeysAtTheSameTime) {
  const std::vector<std::string> keys = {"a", "b"};
  auto done = std::async(std::launch::async, [&] { other_.wait(keys, soon()); });
  store_.set("a", "", soon());
  EXPECT_TRUE(store_.erase("a", soon()));
  store_.set("b", "", soon());
  EXPECT_EQ(done.wait_for(30ms), std::future_status::timeout);
  store_.set("a", "", soon());
  done.get();
}

TEST_P(WaitingStoreTest, WaitsOfManyThreadsShareAHandle) {
  std::vector<std::future<std::string>> waits;
  waits.reserve(8);
  for (int i = 0; i < 8; ++i) {
    waits.push_back(std::async(std::launch::async,
                               [&, i] { return store_.get("k" + std::to_string(i), soon()); }));
  }
  // In the opposite order, so that the first waiter is served last.
  for (int i = 7; i >= 0; --i) {
    store_.set("k" + std::to_string(i), std::to_string(i), soon());
    EXPECT_EQ(waits[static_cast<size_t>(i)].get(), std::to_string(i));
  }
}

TEST_P(WaitingStoreTest, ATimeoutDoesNotDisturbOtherWaits) {
  auto patient = std::async(std::launch::async, [&] { return store_.get("k", soon()); });
  auto hasty = std::async(std::launch::async, [&] {
    return error_of([&] { store_.get("never", short_while()); }).code();
  });
  EXPECT_EQ(hasty.get(), ErrorCode::kTimeout);
  EXPECT_EQ(patient.wait_for(0s), std::future_status::timeout);
  other_.set("k", "v", soon());
  EXPECT_EQ(patient.get(), "v");
}

TEST_P(WaitingStoreTest, WhoArrivesIsSeenBeforeItsWaitIsOver) {
  const std::vector<std::string> awaited = {"b", "c"};
  auto done =
      std::async(std::launch::async, [&] { return other_.arrive("a", "here", awaited, soon()); });
  EXPECT_EQ(store_.get("a", soon()), "here");
  store_.set("b", "", soon());
  EXPECT_EQ(done.wait_for(10ms), std::future_status::timeout);
  store_.set("c", "", soon());
  EXPECT_TRUE(done.get());
  EXPECT_TRUE(store_.arrive("alone", "", {}, soon()));
  EXPECT_TRUE(store_.arrive("late", "", awaited, short_while()));
}

TEST_P(WaitingStoreTest, WhoArrivesTwiceIsRefused) {
  store_.set("a", "first", soon());
  const std::vector<std::string> missing = {"missing"};
  EXPECT_FALSE(store_.arrive("a", "second", missing, soon()));
  EXPECT_EQ(store_.get("a", soon()), "first");
}

TEST_P(WaitingStoreTest, ArrivingTimesOutNamingTheMissingOnly) {
  store_.set("b", "", soon());
  const std::vector<std::string> awaited = {"b", "c"};
  const auto error = error_of([&] { store_.arrive("a", "", awaited, short_while()); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "c'") && !mentions(error, "b'")) << error.what();
  EXPECT_TRUE(store_.try_get("a", soon()).has_value());
}

TEST_P(WaitingStoreTest, CheckNeedsAllKeys) {
  const std::vector<std::string> keys = {"a", "b"};
  EXPECT_FALSE(store_.check(keys, soon()));
  store_.set("a", "", soon());
  EXPECT_FALSE(other_.check(keys, soon()));
  store_.set("b", "", soon());
  EXPECT_TRUE(other_.check(keys, soon()));
  store_.erase("a", soon());
  EXPECT_FALSE(store_.check(keys, soon()));
}

TEST_P(WaitingStoreTest, AwaitedKeysHaveALimit) {
  const std::string too_long(static_cast<size_t>(kMaxKeyBytes) + 1, 'k');
  EXPECT_THROW(store_.get(too_long, soon()), Error);
  EXPECT_THROW(store_.wait(std::vector<std::string>{"a", too_long}, soon()), Error);
}

}  // namespace
}  // namespace lockstep
