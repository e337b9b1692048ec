// Bookkeeping of waits and its bounds, which Store does not show.

#include "lockstep/store/store_state.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

using Status = StoreReply::Status;

StoreRequest make(StoreOp op, std::vector<std::string> keys, std::string value = "",
                  int64_t number = 0) {
  StoreRequest request;
  request.op = op;
  request.keys = std::move(keys);
  request.value = std::move(value);
  request.number = number;
  return request;
}

TEST(StoreState, AnswersTheCallerFirst) {
  StoreState state;
  EXPECT_TRUE(state.submit({1, 1}, make(StoreOp::kGet, {"k"})).empty());
  EXPECT_TRUE(state.submit({2, 1}, make(StoreOp::kWait, {"k"})).empty());
  const auto answers = state.submit({3, 9}, make(StoreOp::kSet, {"k"}, "v"));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].to, (StoreTicket{3, 9}));
  EXPECT_EQ(answers[1].to, (StoreTicket{1, 1}));
  EXPECT_EQ(answers[1].reply.items.at(0).value, "v");
  EXPECT_EQ(state.num_waiting(), 0u);
}

TEST(StoreState, CancelSaysWhatIsMissingOnce) {
  StoreState state;
  state.submit({1, 1}, make(StoreOp::kSet, {"b"}));
  state.submit({1, 2}, make(StoreOp::kWait, {"a", "b", "c"}));
  const auto reply = state.cancel({1, 2});
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status, Status::kTimedOut);
  ASSERT_EQ(reply->items.size(), 2u);
  EXPECT_EQ(reply->items[1].key, "c");
  EXPECT_FALSE(state.cancel({1, 2}).has_value());
  // Nothing of the cancelled wait is left to wake.
  EXPECT_EQ(state.submit({1, 3}, make(StoreOp::kSet, {"a"})).size(), 1u);
}

TEST(StoreState, CancelledWatchIsQuietNotLate) {
  StoreState state;
  state.submit({1, 1}, make(StoreOp::kSet, {"other"}));
  state.submit({1, 2}, make(StoreOp::kWatch, {"w"}));
  const auto reply = state.cancel({1, 2});
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status, Status::kDone);
  EXPECT_EQ(reply->number, 1);
  EXPECT_TRUE(reply->items.empty());
}

TEST(StoreState, AChangeWakesThoseWhoWatchAPrefixOfTheKeyAndNobodyElse) {
  StoreState state;
  const std::vector<std::string> prefixes = {
      "",    "a", "a/", "a/b",   "a/b/", "a/a", "a/bb",  "a/b!",   "a/b0",  "a/b/",
      "a/c", "b", "A",  "a/b/c", "a/b/", "a0",  "a/b/d", "a/b/c/", "a/b/cc"};
  for (size_t i = 0; i < prefixes.size(); ++i)
    state.submit({1, i}, make(StoreOp::kWatch, {prefixes[i]}));
  const std::string key = "a/b/c";
  std::set<uint64_t> woken;
  for (const auto& answer : state.submit({2, 0}, make(StoreOp::kSet, {key}))) {
    if (answer.to.client == 1) woken.insert(answer.to.request);
  }
  for (size_t i = 0; i < prefixes.size(); ++i)
    EXPECT_EQ(woken.count(i) == 1, key.starts_with(prefixes[i])) << prefixes[i];
}

TEST(StoreState, DroppedClientIsForgotten) {
  StoreState state;
  for (uint64_t request = 1; request <= 3; ++request) {
    for (uint64_t client = 1; client <= 3; ++client)
      state.submit({client, request}, make(StoreOp::kGet, {"k"}));
  }
  state.submit({2, 9}, make(StoreOp::kWatch, {""}));
  state.drop_client(2);
  EXPECT_EQ(state.num_waiting(), 6u);
  for (const auto& answer : state.submit({9, 1}, make(StoreOp::kSet, {"k"})))
    EXPECT_NE(answer.to.client, 2u);
}

TEST(StoreState, ADroppedClientsKeysAreErasedForTheOthers) {
  StoreState state;
  state.submit({1, 1}, make(StoreOp::kSetWithLease, {"a"}, "v", 500));
  state.submit({1, 2}, make(StoreOp::kSetWithLease, {"b"}, "v", 100));
  state.submit({2, 1}, make(StoreOp::kSetWithLease, {"c"}, "v", 100));
  ASSERT_NE(state.leased_by(1), nullptr);
  EXPECT_EQ(state.leased_by(1)->at("b"), std::chrono::milliseconds(100));
  state.submit({1, 3}, make(StoreOp::kWatch, {""}, "", 3));
  state.submit({2, 2}, make(StoreOp::kWatch, {"a"}, "", 3));
  state.submit({3, 1}, make(StoreOp::kWatch, {"c"}, "", 3));
  const auto answers = state.drop_client(1);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].to, (StoreTicket{2, 2}));
  EXPECT_EQ(answers[0].reply.items.at(0).value, std::nullopt);
  EXPECT_EQ(state.leased_by(1), nullptr);
  EXPECT_NE(state.leased_by(2), nullptr);
  EXPECT_EQ(state.num_waiting(), 1u);
  EXPECT_TRUE(state.drop_client(1).empty());
}

TEST(StoreState, ALeasedKeyHasOneTimeToLiveAndOneHolder) {
  StoreState state;
  state.submit({1, 1}, make(StoreOp::kSetWithLease, {"a"}, "v", 100));
  state.submit({1, 2}, make(StoreOp::kSetWithLease, {"a"}, "w", 700));
  EXPECT_EQ(state.leased_by(1)->at("a"), std::chrono::milliseconds(700));
  EXPECT_FALSE(state.submit({2, 1}, make(StoreOp::kSetWithLease, {"a"}, "v", 100)).at(0).reply.yes);
  EXPECT_EQ(state.leased_by(2), nullptr);
  state.submit({2, 2}, make(StoreOp::kSet, {"a"}, "x"));
  EXPECT_EQ(state.leased_by(1), nullptr);
}

TEST(StoreState, ATicketWaitsOnce) {
  StoreState state;
  state.submit({1, 1}, make(StoreOp::kGet, {"k"}));
  const auto answers = state.submit({1, 1}, make(StoreOp::kSet, {"k"}, "v"));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].reply.status, Status::kRefused);
  EXPECT_EQ(state.num_waiting(), 1u);
}

TEST(StoreState, LongWaitsMoveOnFromKeyToKey) {
  StoreState state;
  constexpr int kKeys = 2000;
  std::vector<std::string> keys;
  keys.reserve(kKeys);
  for (int i = 0; i < kKeys; ++i) keys.push_back(std::to_string(i));
  for (uint64_t client = 1; client <= 20; ++client)
    state.submit({client, 1}, make(StoreOp::kWait, keys));
  for (int i = 0; i < kKeys - 1; ++i) {
    EXPECT_EQ(state.submit({99, 1}, make(StoreOp::kSet, {std::to_string(i)})).size(), 1u);
  }
  const auto last = std::to_string(kKeys - 1);
  EXPECT_EQ(state.submit({99, 1}, make(StoreOp::kSet, {last})).size(), 21u);
}

TEST(StoreState, OldErasuresAreForgottenAndWatchersTold) {
  StoreState state;
  state.submit({1, 1}, make(StoreOp::kSet, {"w/first"}));
  constexpr int kErasures = 70'000;
  for (int i = 0; i < kErasures; ++i) {
    const std::string key = "w/" + std::to_string(i);
    state.submit({1, 1}, make(StoreOp::kSet, {key}));
    state.submit({1, 1}, make(StoreOp::kErase, {key}));
  }
  const auto old = state.submit({1, 1}, make(StoreOp::kWatch, {"w/"}, "", 1));
  ASSERT_EQ(old.size(), 1u);
  EXPECT_EQ(old[0].reply.status, Status::kRefused);
  const auto again = state.submit({1, 1}, make(StoreOp::kWatch, {"w/"}, "", 0));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].reply.items.size(), 1u);
  const int64_t recent = again[0].reply.number - 2;
  const auto changes = state.submit({1, 1}, make(StoreOp::kWatch, {"w/"}, "", recent));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].reply.items.size(), 1u);
}

}  // namespace
}  // namespace lockstep
