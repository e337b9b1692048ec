// Rules for every store, whatever its kind.

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <future>
#include <optional>

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

class KeyValueStoreTest : public ::testing::TestWithParam<testing::StoreKind<KeyValueStore>> {
 protected:
  testing::StoreSite<KeyValueStore> site_ = GetParam().make();
  std::shared_ptr<KeyValueStore> client_ = site_.connect();
  std::shared_ptr<KeyValueStore> other_client_ = site_.connect();
  KeyValueStore& store_ = *client_;
  KeyValueStore& other_ = *other_client_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, KeyValueStoreTest, ::testing::ValuesIn(testing::store_kinds()),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(KeyValueStoreTest, SetReplacesAndTryGetReturns) {
  store_.set("k", "one", soon());
  EXPECT_EQ(other_.try_get("k", soon()), "one");
  other_.set("k", "two", soon());
  EXPECT_EQ(store_.try_get("k", soon()), "two");
}

TEST_P(KeyValueStoreTest, KeysAndValuesAreBytes) {
  const std::string key("\0\xff/ \n", 5);
  const std::string value("\0\0x\x80", 4);
  store_.set(key, value, soon());
  EXPECT_EQ(other_.try_get(key, soon()), value);
  store_.set("", "empty key", soon());
  store_.set("empty value", "", soon());
  EXPECT_EQ(other_.try_get("", soon()), "empty key");
  EXPECT_EQ(other_.try_get("empty value", soon()), "");
}

TEST_P(KeyValueStoreTest, TryGetNeverWaits) {
  EXPECT_EQ(store_.try_get("k", soon()), std::nullopt);
  store_.set("k", "v", soon());
  EXPECT_EQ(other_.try_get("k", soon()), "v");
}

TEST_P(KeyValueStoreTest, SetIfMissingKeepsAValue) {
  store_.set_if_missing("k", "1", soon());
  other_.set_if_missing("k", "2", soon());
  EXPECT_EQ(store_.try_get("k", soon()), "1");
  store_.set("empty", "", soon());
  store_.set_if_missing("empty", "x", soon());
  EXPECT_EQ(other_.try_get("empty", soon()), "");
  store_.erase("k", soon());
  other_.set_if_missing("k", "3", soon());
  EXPECT_EQ(store_.try_get("k", soon()), "3");
}

TEST_P(KeyValueStoreTest, OneOfManySetsAMissingKey) {
  std::array<std::optional<std::string>, 8> seen;
  run_threads(8, [&](int t) {
    KeyValueStore& store = t % 2 == 0 ? store_ : other_;
    store.set_if_missing("leader", std::to_string(t), soon());
    seen.at(static_cast<size_t>(t)) = store.try_get("leader", soon());
  });
  for (const auto& value : seen) EXPECT_EQ(value, store_.try_get("leader", soon()));
}

TEST_P(KeyValueStoreTest, WatchesOfManyThreadsShareAHandle) {
  const auto version = store_.watch("k", 0, moment()).version;
  std::vector<std::future<Store::Changes>> watches;
  watches.reserve(8);
  for (int i = 0; i < 8; ++i) {
    watches.push_back(std::async(std::launch::async, [&, i] {
      return store_.watch("k" + std::to_string(i), version, soon());
    }));
  }
  // In the opposite order, so that the first watcher is served last.
  for (int i = 7; i >= 0; --i) {
    store_.set("k" + std::to_string(i), std::to_string(i), soon());
    EXPECT_EQ(watches[static_cast<size_t>(i)].get().changes.at(0).value, std::to_string(i));
  }
}

TEST_P(KeyValueStoreTest, ASilentWatchDoesNotDisturbOthers) {
  auto patient = std::async(std::launch::async, [&] { return store_.watch("k", 0, soon()); });
  auto hasty = std::async(std::launch::async, [&] { return store_.watch("never", 0, moment()); });
  EXPECT_TRUE(hasty.get().changes.empty());
  EXPECT_EQ(patient.wait_for(0s), std::future_status::timeout);
  other_.set("k", "v", soon());
  EXPECT_EQ(patient.get().changes.at(0).value, "v");
}

TEST_P(KeyValueStoreTest, EraseTellsWhetherTheKeyExisted) {
  EXPECT_FALSE(store_.erase("k", soon()));
  store_.set("k", "7", soon());
  EXPECT_TRUE(other_.erase("k", soon()));
  EXPECT_FALSE(store_.erase("k", soon()));
  EXPECT_EQ(store_.try_get("k", soon()), std::nullopt);
}

TEST_P(KeyValueStoreTest, ListIsSortedAndKeepsToThePrefix) {
  using Keys = std::vector<std::string>;
  EXPECT_EQ(store_.list("", soon()), Keys{});
  for (const char* key : {"b/2", "a", "b/10", "b", "c", "b/3"}) store_.set(key, "", soon());
  other_.erase("b/3", soon());
  EXPECT_EQ(store_.list("b/", soon()), (Keys{"b/10", "b/2"}));
  EXPECT_EQ(other_.list("", soon()), (Keys{"a", "b", "b/10", "b/2", "c"}));
  EXPECT_EQ(store_.list("b/2x", soon()), Keys{});
}

TEST_P(KeyValueStoreTest, WatchFromZeroReturnsAllThereIs) {
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

TEST_P(KeyValueStoreTest, WatchReturnsTheLastStateOfWhatChangedSince) {
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

TEST_P(KeyValueStoreTest, WatchWakesForEachKindOfChange) {
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
  EXPECT_EQ(next([&] { store_.set_if_missing("w", "a", soon()); }), "a");
  EXPECT_EQ(next([&] { store_.set("w", "5", soon()); }), "5");
  const std::vector<Store::KeyValue> items = {{"w", "7"}};
  EXPECT_EQ(next([&] { store_.set_many(items, soon()); }), "7");
  EXPECT_EQ(next([&] { store_.erase("w", soon()); }), "erased");
}

TEST_P(KeyValueStoreTest, WatchIsSilentWhenNothingHappens) {
  const auto quiet = store_.watch("w", 0, moment());
  EXPECT_TRUE(quiet.changes.empty());
  store_.set("elsewhere", "", soon());
  const auto still = store_.watch("w", quiet.version, moment());
  EXPECT_TRUE(still.changes.empty());
  store_.set("w", "v", soon());
  EXPECT_EQ(store_.watch("w", still.version, soon()).changes.size(), 1u);
}

TEST_P(KeyValueStoreTest, WatchersMissNothing) {
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

TEST_P(KeyValueStoreTest, KeysHaveALimit) {
  const std::string prefix_room(16, 'p');
  const std::string longest(static_cast<size_t>(kMaxKeyBytes) - prefix_room.size(), 'k');
  store_.set(longest, "v", soon());
  EXPECT_EQ(other_.try_get(longest, soon()), "v");
  const std::string too_long(static_cast<size_t>(kMaxKeyBytes) + 1, 'k');
  const auto error = error_of([&] { store_.set(too_long, "v", soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(mentions(error, "4096") && mentions(error, "'")) << error.what();
  EXPECT_LT(std::string(error.what()).size(), 300u);
  EXPECT_THROW(store_.try_get(too_long, soon()), Error);
  EXPECT_THROW(store_.list(too_long, soon()), Error);
  EXPECT_THROW(store_.watch(too_long, 0, soon()), Error);
  EXPECT_EQ(store_.list("", soon()).size(), 1u);
}

TEST_P(KeyValueStoreTest, ValuesHaveALimit) {
  std::string value(static_cast<size_t>(kMaxValueBytes), 'v');
  store_.set("largest", value, soon());
  EXPECT_EQ(other_.try_get("largest", soon()), value);
  value += 'v';
  for (const auto& attempt :
       std::vector<std::function<void()>>{[&] { store_.set("k", value, soon()); },
                                          [&] { store_.set_if_missing("k", value, soon()); }}) {
    const auto error = error_of(attempt);
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(mentions(error, "'") && mentions(error, "8388608")) << error.what();
  }
  EXPECT_EQ(store_.try_get("k", soon()), std::nullopt);
}

TEST_P(KeyValueStoreTest, RepliesHaveALimit) {
  const std::string value(static_cast<size_t>(kMaxValueBytes), 'v');
  for (int i = 0; i < 9; ++i) store_.set("big/" + std::to_string(i), value, soon());
  const auto error = error_of([&] { store_.watch("big/", 0, soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(mentions(error, "big/")) << error.what();
  EXPECT_EQ(store_.watch("big/3", 0, soon()).changes.size(), 1u);
}

TEST_P(KeyValueStoreTest, SetManySetsAll) {
  store_.set("b", "old", soon());
  auto seen = std::async(std::launch::async, [&] { return other_.watch("c", 0, soon()); });
  const std::vector<Store::KeyValue> items = {{"a", "1"}, {"b", "2"}, {"c", ""}, {"a", "3"}};
  store_.set_many(items, soon());
  EXPECT_EQ(seen.get().changes.at(0).value, "");
  EXPECT_EQ(other_.try_get("a", soon()), "3");
  EXPECT_EQ(other_.try_get("b", soon()), "2");
  store_.set_many({}, soon());
  EXPECT_EQ(store_.list("", soon()).size(), 3u);
}

TEST_P(KeyValueStoreTest, SetManyTakesMoreThanOneRequestHolds) {
  std::vector<Store::KeyValue> items;
  for (int i = 0; i < 5; ++i)
    items.push_back({"k" + std::to_string(i), std::string(5 << 20, static_cast<char>('a' + i))});
  store_.set_many(items, soon());
  for (const auto& item : items) EXPECT_EQ(other_.try_get(item.key, soon()), item.value);
}

TEST_P(KeyValueStoreTest, SetManyNamesTheKeyThatExceedsALimit) {
  const std::string value(static_cast<size_t>(kMaxValueBytes) + 1, 'v');
  const std::vector<Store::KeyValue> items = {{"fits", "v"}, {"too large", value}};
  const auto error = error_of([&] { store_.set_many(items, soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(mentions(error, "too large") && mentions(error, "8388608")) << error.what();
}

TEST_P(KeyValueStoreTest, PrefixesNest) {
  const auto inner = with_prefix(with_prefix(client_, "a"), "b");
  inner->set("k", "v", soon());
  EXPECT_EQ(store_.try_get("a/b/k", soon()), "v");
  EXPECT_EQ(inner->list("", soon()), std::vector<std::string>{"k"});
}

}  // namespace
}  // namespace lockstep
