// Rules for every store, whatever its kind.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
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

Deadline moment() {
  return Deadline::after(30ms);
}

class StoreTest : public ::testing::TestWithParam<testing::StoreKind> {
 protected:
  testing::StoreSite site_ = GetParam().make();
  std::shared_ptr<Store> client_ = site_.connect();
  std::shared_ptr<Store> other_client_ = site_.connect();
  Store& store_ = *client_;
  Store& other_ = *other_client_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, StoreTest, ::testing::ValuesIn(testing::store_kinds()),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(StoreTest, SetReplacesAndGetReturns) {
  store_.set("k", "one", soon());
  EXPECT_EQ(other_.get("k", soon()), "one");
  other_.set("k", "two", soon());
  EXPECT_EQ(store_.get("k", soon()), "two");
}

TEST_P(StoreTest, KeysAndValuesAreBytes) {
  const std::string key("\0\xff/ \n", 5);
  const std::string value("\0\0x\x80", 4);
  store_.set(key, value, soon());
  EXPECT_EQ(other_.get(key, soon()), value);
  store_.set("", "empty key", soon());
  store_.set("empty value", "", soon());
  EXPECT_EQ(other_.get("", soon()), "empty key");
  EXPECT_EQ(other_.get("empty value", soon()), "");
}

TEST_P(StoreTest, TryGetNeverWaits) {
  EXPECT_EQ(store_.try_get("k", soon()), std::nullopt);
  store_.set("k", "v", soon());
  EXPECT_EQ(other_.try_get("k", soon()), "v");
}

TEST_P(StoreTest, GetWaitsForTheKey) {
  auto got = std::async(std::launch::async, [&] { return other_.get("k", soon()); });
  EXPECT_EQ(got.wait_for(30ms), std::future_status::timeout);
  store_.set("k", "v", soon());
  EXPECT_EQ(got.get(), "v");
}

TEST_P(StoreTest, GetTimesOutNamingTheKeyAndStaysUsable) {
  const auto error = error_of([&] { store_.get("left/out", moment()); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "left/out")) << error.what();
  store_.set("k", "v", soon());
  EXPECT_EQ(store_.get("k", soon()), "v");
  store_.set("left/out", "late", soon());
  EXPECT_EQ(store_.get("left/out", soon()), "late");
}

TEST_P(StoreTest, GetOfAPresentKeySucceedsEvenLate) {
  store_.set("k", "v", soon());
  EXPECT_EQ(store_.get("k", Deadline::after(-1s)), "v");
}

TEST_P(StoreTest, AddCounts) {
  EXPECT_EQ(store_.add("n", 5, soon()), 5);
  EXPECT_EQ(other_.add("n", -7, soon()), -2);
  EXPECT_EQ(store_.add("n", 0, soon()), -2);
  EXPECT_EQ(store_.get("n", soon()), "-2");
  store_.set("m", "40", soon());
  EXPECT_EQ(store_.add("m", 2, soon()), 42);
}

TEST_P(StoreTest, AddRefusesWhatIsNoCounter) {
  for (const char* held : {"", "x", "1x", " 1", "9223372036854775808"}) {
    store_.set("n", held, soon());
    const auto error = error_of([&] { store_.add("n", 1, soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(mentions(error, "'")) << error.what();
    EXPECT_EQ(store_.get("n", soon()), held);
  }
}

TEST_P(StoreTest, AddRefusesToOverflow) {
  store_.set("n", "9223372036854775807", soon());
  EXPECT_EQ(error_of([&] { store_.add("n", 1, soon()); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(store_.get("n", soon()), "9223372036854775807");
  EXPECT_EQ(store_.add("n", -1, soon()), 9223372036854775806);
}

TEST_P(StoreTest, AddIsAtomicAcrossThreads) {
  constexpr int kThreads = 8;
  constexpr int kAdds = 50;
  run_threads(kThreads, [&](int t) {
    for (int i = 0; i < kAdds; ++i) (t % 2 == 0 ? store_ : other_).add("n", 1, soon());
  });
  EXPECT_EQ(store_.add("n", 0, soon()), kThreads * kAdds);
}

TEST_P(StoreTest, CompareSetSwapsOnlyWhatWasExpected) {
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

TEST_P(StoreTest, CompareSetTellsEmptyFromMissing) {
  auto swap = store_.compare_set("k", "", "x", soon());
  EXPECT_FALSE(swap.swapped);
  EXPECT_EQ(swap.value, std::nullopt);
  store_.set("k", "", soon());
  EXPECT_FALSE(store_.compare_set("k", std::nullopt, "x", soon()).swapped);
  EXPECT_TRUE(store_.compare_set("k", "", "x", soon()).swapped);
}

TEST_P(StoreTest, CompareSetWakesWaiters) {
  auto got = std::async(std::launch::async, [&] { return other_.get("k", soon()); });
  store_.compare_set("k", std::nullopt, "v", soon());
  EXPECT_EQ(got.get(), "v");
}

TEST_P(StoreTest, OneOfManyWinsACompareSet) {
  std::atomic<int> winners = 0;
  run_threads(8, [&](int t) {
    Store& store = t % 2 == 0 ? store_ : other_;
    winners += store.compare_set("leader", std::nullopt, std::to_string(t), soon()).swapped;
  });
  EXPECT_EQ(winners, 1);
}

TEST_P(StoreTest, WaitReturnsWhenAllAreThere) {
  const std::vector<std::string> keys = {"a", "b", "c", "a"};
  auto done = std::async(std::launch::async, [&] { other_.wait(keys, soon()); });
  store_.set("c", "", soon());
  store_.set("a", "", soon());
  EXPECT_EQ(done.wait_for(30ms), std::future_status::timeout);
  store_.set("b", "", soon());
  done.get();
  other_.wait(keys, soon());
}

TEST_P(StoreTest, WaitForNothingReturnsAtOnce) {
  store_.wait({}, moment());
  EXPECT_TRUE(store_.check({}, soon()));
}

TEST_P(StoreTest, WaitTimesOutNamingTheMissingOnly) {
  store_.set("here", "", soon());
  const std::vector<std::string> keys = {"gone1", "here", "gone2"};
  const auto error = error_of([&] { store_.wait(keys, moment()); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "gone1") && mentions(error, "gone2")) << error.what();
  EXPECT_FALSE(mentions(error, "here")) << error.what();
  EXPECT_TRUE(mentions(error, "2 of 3")) << error.what();
}

TEST_P(StoreTest, LongListsOfMissingKeysAreCut) {
  std::vector<std::string> keys;
  keys.reserve(1000);
  for (int i = 0; i < 1000; ++i) keys.push_back("key" + std::to_string(i));
  const auto error = error_of([&] { store_.wait(keys, moment()); });
  EXPECT_TRUE(mentions(error, "key7' and 992 more")) << error.what();
}

TEST_P(StoreTest, WaitNeedsAllKeysAtTheSameTime) {
  const std::vector<std::string> keys = {"a", "b"};
  auto done = std::async(std::launch::async, [&] { other_.wait(keys, soon()); });
  store_.set("a", "", soon());
  EXPECT_TRUE(store_.erase("a", soon()));
  store_.set("b", "", soon());
  EXPECT_EQ(done.wait_for(30ms), std::future_status::timeout);
  store_.set("a", "", soon());
  done.get();
}

TEST_P(StoreTest, WaitsOfManyThreadsShareAHandle) {
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

TEST_P(StoreTest, ATimeoutDoesNotDisturbOtherWaits) {
  auto patient = std::async(std::launch::async, [&] { return store_.get("k", soon()); });
  auto hasty = std::async(std::launch::async,
                          [&] { return error_of([&] { store_.get("never", moment()); }).code(); });
  EXPECT_EQ(hasty.get(), ErrorCode::kTimeout);
  EXPECT_EQ(patient.wait_for(0s), std::future_status::timeout);
  other_.set("k", "v", soon());
  EXPECT_EQ(patient.get(), "v");
}

TEST_P(StoreTest, WhoArrivesIsSeenBeforeItsWaitIsOver) {
  const std::vector<std::string> awaited = {"b", "c"};
  auto done =
      std::async(std::launch::async, [&] { return other_.arrive("a", "here", awaited, soon()); });
  EXPECT_EQ(store_.get("a", soon()), "here");
  store_.set("b", "", soon());
  EXPECT_EQ(done.wait_for(10ms), std::future_status::timeout);
  store_.set("c", "", soon());
  EXPECT_TRUE(done.get());
  EXPECT_TRUE(store_.arrive("alone", "", {}, soon()));
  EXPECT_TRUE(store_.arrive("late", "", awaited, moment()));
}

TEST_P(StoreTest, WhoArrivesTwiceIsRefused) {
  store_.set("a", "first", soon());
  const std::vector<std::string> missing = {"missing"};
  EXPECT_FALSE(store_.arrive("a", "second", missing, soon()));
  EXPECT_EQ(store_.get("a", soon()), "first");
}

TEST_P(StoreTest, ArrivingTimesOutNamingTheMissingOnly) {
  store_.set("b", "", soon());
  const std::vector<std::string> awaited = {"b", "c"};
  const auto error = error_of([&] { store_.arrive("a", "", awaited, moment()); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "c'") && !mentions(error, "b'")) << error.what();
  EXPECT_TRUE(store_.try_get("a", soon()).has_value());
}

TEST_P(StoreTest, CheckNeedsAllKeys) {
  const std::vector<std::string> keys = {"a", "b"};
  EXPECT_FALSE(store_.check(keys, soon()));
  store_.set("a", "", soon());
  EXPECT_FALSE(other_.check(keys, soon()));
  store_.set("b", "", soon());
  EXPECT_TRUE(other_.check(keys, soon()));
  store_.erase("a", soon());
  EXPECT_FALSE(store_.check(keys, soon()));
}

TEST_P(StoreTest, EraseTellsWhetherTheKeyExisted) {
  EXPECT_FALSE(store_.erase("k", soon()));
  store_.set("k", "7", soon());
  EXPECT_TRUE(other_.erase("k", soon()));
  EXPECT_FALSE(store_.erase("k", soon()));
  EXPECT_EQ(store_.try_get("k", soon()), std::nullopt);
  EXPECT_EQ(store_.add("k", 1, soon()), 1);
}

TEST_P(StoreTest, ListIsSortedAndKeepsToThePrefix) {
  using Keys = std::vector<std::string>;
  EXPECT_EQ(store_.list("", soon()), Keys{});
  for (const char* key : {"b/2", "a", "b/10", "b", "c", "b/3"}) store_.set(key, "", soon());
  other_.erase("b/3", soon());
  EXPECT_EQ(store_.list("b/", soon()), (Keys{"b/10", "b/2"}));
  EXPECT_EQ(other_.list("", soon()), (Keys{"a", "b", "b/10", "b/2", "c"}));
  EXPECT_EQ(store_.list("b/2x", soon()), Keys{});
}

TEST_P(StoreTest, WatchFromZeroReturnsAllThereIs) {
  store_.set("w/b", "2", soon());
  store_.set("w/a", "1", soon());
  store_.set("w/gone", "x", soon());
  store_.erase("w/gone", soon());
  store_.set("v", "other", soon());
  const auto result = other_.watch("w/", 0, soon());
  ASSERT_EQ(result.changes.size(), 2u);
  EXPECT_EQ(result.changes[0].key, "w/a");
  EXPECT_EQ(result.changes[0].value, "1");
  EXPECT_EQ(result.changes[1].key, "w/b");
}

TEST_P(StoreTest, WatchReturnsTheLastStateOfWhatChangedSince) {
  store_.set("w/a", "1", soon());
  store_.set("w/b", "1", soon());
  store_.set("w/c", "1", soon());
  const auto first = other_.watch("w/", 0, soon());
  store_.set("w/b", "2", soon());
  store_.set("w/b", "3", soon());
  store_.erase("w/a", soon());
  store_.set("x", "outside", soon());
  const auto second = other_.watch("w/", first.version, soon());
  ASSERT_EQ(second.changes.size(), 2u);
  EXPECT_EQ(second.changes[0].key, "w/a");
  EXPECT_EQ(second.changes[0].value, std::nullopt);
  EXPECT_EQ(second.changes[1].key, "w/b");
  EXPECT_EQ(second.changes[1].value, "3");
  EXPECT_GT(second.version, first.version);
}

TEST_P(StoreTest, WatchWakesForEachKindOfChange) {
  uint64_t version = 0;
  const auto next = [&](const std::function<void()>& change) {
    auto watching =
        std::async(std::launch::async, [&] { return other_.watch("w", version, soon()); });
    EXPECT_EQ(watching.wait_for(10ms), std::future_status::timeout);
    change();
    const auto result = watching.get();
    version = result.version;
    return result.changes.at(0).value.value_or("erased");
  };
  EXPECT_EQ(next([&] { store_.set("w", "a", soon()); }), "a");
  EXPECT_EQ(next([&] { store_.compare_set("w", "a", "5", soon()); }), "5");
  EXPECT_EQ(next([&] { store_.add("w", 2, soon()); }), "7");
  EXPECT_EQ(next([&] { store_.erase("w", soon()); }), "erased");
}

TEST_P(StoreTest, WatchIsSilentWhenNothingHappens) {
  const auto quiet = store_.watch("w", 0, moment());
  EXPECT_TRUE(quiet.changes.empty());
  store_.set("elsewhere", "", soon());
  const auto still = store_.watch("w", quiet.version, moment());
  EXPECT_TRUE(still.changes.empty());
  store_.set("w", "v", soon());
  EXPECT_EQ(store_.watch("w", still.version, soon()).changes.size(), 1u);
}

TEST_P(StoreTest, WatchersMissNothing) {
  constexpr int kChanges = 200;
  auto seen = std::async(std::launch::async, [&] {
    uint64_t version = 0;
    std::string last;
    for (int calls = 0; last != std::to_string(kChanges) && calls <= kChanges; ++calls) {
      const auto result = other_.watch("w", version, soon());
      EXPECT_FALSE(result.changes.empty());
      version = result.version;
      last = result.changes.at(0).value.value();
    }
    return last;
  });
  for (int i = 1; i <= kChanges; ++i) store_.set("w", std::to_string(i), soon());
  EXPECT_EQ(seen.get(), std::to_string(kChanges));
}

TEST_P(StoreTest, KeysHaveALimit) {
  const std::string prefix_room(16, 'p');
  const std::string longest(static_cast<size_t>(kMaxKeyBytes) - prefix_room.size(), 'k');
  store_.set(longest, "v", soon());
  EXPECT_EQ(other_.get(longest, soon()), "v");
  const std::string too_long(static_cast<size_t>(kMaxKeyBytes) + 1, 'k');
  const auto error = error_of([&] { store_.set(too_long, "v", soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(mentions(error, "4096") && mentions(error, "'")) << error.what();
  EXPECT_LT(std::string(error.what()).size(), 300u);
  EXPECT_THROW(store_.get(too_long, soon()), Error);
  EXPECT_THROW(store_.list(too_long, soon()), Error);
  EXPECT_THROW(store_.watch(too_long, 0, soon()), Error);
  EXPECT_THROW(store_.wait(std::vector<std::string>{"a", too_long}, soon()), Error);
  EXPECT_EQ(store_.list("", soon()).size(), 1u);
}

TEST_P(StoreTest, ValuesHaveALimit) {
  std::string value(static_cast<size_t>(kMaxValueBytes), 'v');
  store_.set("largest", value, soon());
  EXPECT_EQ(other_.get("largest", soon()), value);
  const std::string swapped(value.size(), 'w');
  EXPECT_TRUE(other_.compare_set("largest", value, swapped, soon()).swapped);
  value += 'v';
  for (const auto& attempt : std::vector<std::function<void()>>{
           [&] { store_.set("k", value, soon()); },
           [&] { store_.compare_set("k", value, "", soon()); },
           [&] { store_.compare_set("k", std::nullopt, value, soon()); }}) {
    const auto error = error_of(attempt);
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(mentions(error, "'") && mentions(error, "8388608")) << error.what();
  }
  EXPECT_EQ(store_.try_get("k", soon()), std::nullopt);
}

TEST_P(StoreTest, RepliesHaveALimit) {
  const std::string value(static_cast<size_t>(kMaxValueBytes), 'v');
  for (int i = 0; i < 9; ++i) store_.set("big/" + std::to_string(i), value, soon());
  const auto error = error_of([&] { store_.watch("big/", 0, soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(mentions(error, "big/")) << error.what();
  EXPECT_EQ(store_.watch("big/3", 0, soon()).changes.size(), 1u);
}

TEST_P(StoreTest, SetManySetsAll) {
  store_.set("b", "old", soon());
  auto got = std::async(std::launch::async, [&] { return other_.get("c", soon()); });
  const std::vector<Store::KeyValue> items = {{"a", "1"}, {"b", "2"}, {"c", ""}, {"a", "3"}};
  store_.set_many(items, soon());
  EXPECT_EQ(got.get(), "");
  EXPECT_EQ(other_.get("a", soon()), "3");
  EXPECT_EQ(other_.get("b", soon()), "2");
  store_.set_many({}, soon());
  EXPECT_EQ(store_.list("", soon()).size(), 3u);
}

TEST_P(StoreTest, SetManyTakesMoreThanOneRequestHolds) {
  std::vector<Store::KeyValue> items;
  for (int i = 0; i < 5; ++i)
    items.push_back({"k" + std::to_string(i), std::string(5 << 20, static_cast<char>('a' + i))});
  store_.set_many(items, soon());
  for (const auto& item : items) EXPECT_EQ(other_.get(item.key, soon()), item.value);
}

TEST_P(StoreTest, SetManyNamesTheKeyThatExceedsALimit) {
  const std::string value(static_cast<size_t>(kMaxValueBytes) + 1, 'v');
  const std::vector<Store::KeyValue> items = {{"fits", "v"}, {"too large", value}};
  const auto error = error_of([&] { store_.set_many(items, soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(mentions(error, "too large") && mentions(error, "8388608")) << error.what();
}

TEST_P(StoreTest, PrefixesNest) {
  const auto inner = with_prefix(with_prefix(client_, "a"), "b");
  inner->set("k", "v", soon());
  EXPECT_EQ(store_.get("a/b/k", soon()), "v");
  EXPECT_EQ(inner->list("", soon()), std::vector<std::string>{"k"});
}

}  // namespace
}  // namespace lockstep
