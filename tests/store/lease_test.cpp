// Leased keys, in every kind of store.

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

/// So long that no test exceeds it, however busy the machine.
constexpr auto kLong = std::chrono::milliseconds(10min);

class LeaseTest : public ::testing::TestWithParam<testing::StoreKind<KeyValueStore>> {
 protected:
  /// The next changes of `prefix` for `watcher`, from `version_` on.
  std::vector<Store::Change> changes(KeyValueStore& watcher, std::string_view prefix) {
    auto result = watcher.watch(prefix, version_, soon());
    version_ = result.version;
    return result.changes;
  }

  testing::StoreSite<KeyValueStore> site_ = GetParam().make();
  std::shared_ptr<KeyValueStore> holder_ = site_.connect();
  std::shared_ptr<KeyValueStore> other_ = site_.connect();
  uint64_t version_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Kinds, LeaseTest, ::testing::ValuesIn(testing::store_kinds()),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(LeaseTest, MakesTheKeyOnlyWhereThereIsNone) {
  EXPECT_TRUE(holder_->set_with_lease("k", "mine", kLong, soon()));
  EXPECT_FALSE(other_->set_with_lease("k", "yours", kLong, soon()));
  EXPECT_FALSE(other_->set_with_lease("k", "mine", kLong, soon()));
  other_->set_if_missing("k", "yours", soon());
  EXPECT_EQ(other_->try_get("k", soon()), "mine");
  other_->set("plain", "v", soon());
  EXPECT_FALSE(other_->set_with_lease("plain", "v", kLong, soon()));
  EXPECT_EQ(other_->list("", soon()), (std::vector<std::string>{"k", "plain"}));
}

TEST_P(LeaseTest, OneOfManyGetsIt) {
  std::atomic<int> holders = 0;
  std::vector<std::shared_ptr<KeyValueStore>> clients(6);
  run_threads(6, [&](int t) {
    auto& client = clients[static_cast<size_t>(t)];
    client = site_.connect();
    holders += client->set_with_lease("leader", std::to_string(t), kLong, soon());
  });
  EXPECT_EQ(holders, 1);
}

TEST_P(LeaseTest, RenewingIsSeenByNobody) {
  holder_->set_with_lease("k", "v", kLong, soon());
  EXPECT_EQ(changes(*other_, "").size(), 1u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(holder_->set_with_lease("k", "v", kLong * 2, soon()));
  holder_->set("later", "", soon());
  const auto seen = changes(*other_, "");
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].key, "later");
}

TEST_P(LeaseTest, AnotherValueIsSet) {
  holder_->set_with_lease("k", "1", kLong, soon());
  EXPECT_EQ(changes(*other_, "k").size(), 1u);
  auto watching = std::async(std::launch::async, [&] { return changes(*other_, "k"); });
  EXPECT_TRUE(holder_->set_with_lease("k", "2", kLong, soon()));
  EXPECT_EQ(watching.get().at(0).value, "2");
  EXPECT_FALSE(other_->set_with_lease("k", "2", kLong, soon()));
}

TEST_P(LeaseTest, WakesThoseWhoWatchTheKey) {
  auto seen = std::async(std::launch::async, [&] { return changes(*other_, "k"); });
  EXPECT_EQ(seen.wait_for(10ms), std::future_status::timeout);
  holder_->set_with_lease("k", "v", kLong, soon());
  EXPECT_EQ(seen.get().at(0).value, "v");
}

TEST_P(LeaseTest, ErasingReleases) {
  for (KeyValueStore* eraser : {holder_.get(), other_.get()}) {
    EXPECT_TRUE(holder_->set_with_lease("k", "v", kLong, soon()));
    EXPECT_TRUE(eraser->erase("k", soon()));
    EXPECT_EQ(other_->try_get("k", soon()), std::nullopt);
  }
  EXPECT_TRUE(other_->set_with_lease("k", "v", kLong, soon()));
  EXPECT_FALSE(holder_->set_with_lease("k", "v", kLong, soon()));
}

TEST_P(LeaseTest, TheKeysEndWithTheirHolder) {
  other_->set("plain", "", soon());
  EXPECT_TRUE(holder_->set_with_lease("a", "1", kLong, soon()));
  EXPECT_TRUE(holder_->set_with_lease("b", "2", kLong * 2, soon()));
  EXPECT_TRUE(other_->set_with_lease("c", "3", kLong, soon()));
  EXPECT_EQ(changes(*other_, "").size(), 4u);
  auto watching = std::async(std::launch::async, [&] {
    auto all = changes(*other_, "");
    while (all.size() < 2) {
      for (auto& change : changes(*other_, "")) all.push_back(std::move(change));
    }
    return all;
  });
  holder_.reset();
  const auto seen = watching.get();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].key, "a");
  EXPECT_EQ(seen[0].value, std::nullopt);
  EXPECT_EQ(seen[1].key, "b");
  EXPECT_EQ(other_->list("", soon()), (std::vector<std::string>{"c", "plain"}));
  EXPECT_TRUE(other_->set_with_lease("a", "taken", kLong, soon()));
}

TEST_P(LeaseTest, WhatIsWrittenByOtherMeansStays) {
  using Write = void (*)(KeyValueStore&);
  const std::vector<Write> writes = {
      +[](KeyValueStore& store) { store.set("k", "5", soon()); },
      +[](KeyValueStore& store) {
        store.set_many(std::vector<Store::KeyValue>{{"k", "5"}}, soon());
      }};
  for (const Write write : writes) {
    auto holder = site_.connect();
    EXPECT_TRUE(holder->set_with_lease("k", "1", kLong, soon()));
    EXPECT_TRUE(holder->set_with_lease("sign", "", kLong, soon()));
    write(*other_);
    EXPECT_FALSE(holder->set_with_lease("k", "5", kLong, soon()));
    const auto before = other_->watch("sign", 0, soon());
    holder.reset();
    other_->watch("sign", before.version, soon());  // the holder's end has been seen
    EXPECT_EQ(other_->try_get("k", soon()), "5");
    other_->erase("k", soon());
  }
}

TEST_P(LeaseTest, AClientsPrefixesAreTheSameClient) {
  const auto inner = with_prefix(holder_, "a");
  EXPECT_TRUE(inner->set_with_lease("k", "v", kLong, soon()));
  EXPECT_TRUE(holder_->set_with_lease("a/k", "w", kLong, soon()));
  EXPECT_EQ(inner->try_get("k", soon()), "w");
  EXPECT_FALSE(with_prefix(other_, "a")->set_with_lease("k", "w", kLong, soon()));
}

TEST_P(LeaseTest, ATimeToLiveHasLimits) {
  for (const std::chrono::milliseconds ttl : {0ms, -1ms, kMaxLeaseTtl + 1ms}) {
    const auto error = error_of([&] { holder_->set_with_lease("k", "v", ttl, soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(mentions(error, "'") && mentions(error, "86400000")) << error.what();
  }
  EXPECT_EQ(other_->try_get("k", soon()), std::nullopt);
  EXPECT_TRUE(holder_->set_with_lease("k", "v", kMaxLeaseTtl, soon()));
}

}  // namespace
}  // namespace lockstep
