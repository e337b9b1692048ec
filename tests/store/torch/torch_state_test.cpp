#include "lockstep/store/torch/torch_state.h"

#include <gtest/gtest.h>

#include "tests/store/helpers.h"
#include "tests/store/torch/torch_bytes.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::raw;
using testing::sized;
using Texts = std::vector<std::string>;

const std::string kTorchStop(1, '\0');
const std::string kTorchCanceled(1, '\1');

/// A store, and its replies as text: "1:bytes 2:bytes".
class TorchStates : public ::testing::Test {
 protected:
  std::vector<TorchReply> all(uint64_t client, TorchOp op, Texts keys = {}, Texts values = {},
                              int64_t number = 0) {
    return state_.submit(client, {op, std::move(keys), std::move(values), number});
  }
  /// The only reply, which goes to the client itself; empty: none.
  std::string own(uint64_t client, TorchOp op, Texts keys = {}, Texts values = {},
                  int64_t number = 0) {
    const auto replies = all(client, op, std::move(keys), std::move(values), number);
    if (replies.empty()) return "";
    EXPECT_EQ(replies.size(), 1U);
    EXPECT_EQ(replies[0].client, client);
    return replies[0].bytes;
  }
  void expect_woken(const std::vector<TorchReply>& replies, const std::vector<uint64_t>& clients) {
    std::vector<uint64_t> woken;
    for (const auto& reply : replies) {
      woken.push_back(reply.client);
      EXPECT_EQ(reply.bytes, kTorchStop);
    }
    EXPECT_EQ(woken, clients);
  }
  std::string get(const std::string& key) { return own(9, TorchOp::kGet, {key}); }

  TorchState state_;
};

TEST_F(TorchStates, ValuesAreSetAndRead) {
  EXPECT_EQ(own(1, TorchOp::kSet, {"k"}, {"v"}), "");
  EXPECT_EQ(get("k"), sized("v"));
  EXPECT_EQ(get("missing"), sized("")) << "as torch's server answers";
  EXPECT_EQ(own(1, TorchOp::kMultiSet, {"k", "l"}, {"1", "2"}), "");
  EXPECT_EQ(own(1, TorchOp::kMultiGet, {"l", "k", "l"}), sized("2") + sized("1") + sized("2"));
  EXPECT_EQ(own(1, TorchOp::kAppend, {"k"}, {"00"}), "");
  EXPECT_EQ(own(1, TorchOp::kAppend, {"new"}, {"x"}), "");
  EXPECT_EQ(get("k"), sized("100"));
  EXPECT_EQ(get("new"), sized("x"));
  EXPECT_EQ(own(1, TorchOp::kNumKeys), raw(int64_t{3}));
  EXPECT_EQ(own(1, TorchOp::kListKeys), raw(int64_t{3}) + sized("k") + sized("l") + sized("new"));
  EXPECT_EQ(own(1, TorchOp::kDeleteKey, {"k"}), raw(int64_t{1}));
  EXPECT_EQ(own(1, TorchOp::kDeleteKey, {"k"}), raw(int64_t{0}));
  EXPECT_EQ(own(1, TorchOp::kCheck, {"l", "new"}), kTorchStop);
  EXPECT_EQ(own(1, TorchOp::kCheck, {"l", "k"}), std::string("\1"));
  EXPECT_EQ(own(1, TorchOp::kPing, {}, {}, 0x11223344), raw(uint32_t{0x11223344}));
}

TEST_F(TorchStates, CountersAreDecimalText) {
  EXPECT_EQ(own(1, TorchOp::kAdd, {"n"}, {}, 5), raw(int64_t{5}));
  EXPECT_EQ(own(1, TorchOp::kAdd, {"n"}, {}, -7), raw(int64_t{-2}));
  EXPECT_EQ(get("n"), sized("-2"));
  own(1, TorchOp::kSet, {"word"}, {"w"});
  EXPECT_EQ(error_of([&] { own(1, TorchOp::kAdd, {"word"}, {}, 1); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(get("word"), sized("w"));
}

TEST_F(TorchStates, CompareSetAnswersAsTorchDoes) {
  EXPECT_EQ(own(1, TorchOp::kCompareSet, {"k"}, {"old", "new"}), sized("old"));
  EXPECT_EQ(own(1, TorchOp::kNumKeys), raw(int64_t{0})) << "nothing was set";
  EXPECT_EQ(own(1, TorchOp::kCompareSet, {"k"}, {"", "a"}), sized("a"));
  EXPECT_EQ(own(1, TorchOp::kCompareSet, {"k"}, {"b", "c"}), sized("a"));
  EXPECT_EQ(own(1, TorchOp::kCompareSet, {"k"}, {"a", "b"}), sized("b"));
}

TEST_F(TorchStates, AWaitEndsWithItsLastKey) {
  EXPECT_EQ(own(1, TorchOp::kWait, {"a", "b"}), "");
  EXPECT_EQ(own(2, TorchOp::kWait, {"b", "b"}), "");
  expect_woken(all(3, TorchOp::kSet, {"a"}, {""}), {});
  all(3, TorchOp::kDeleteKey, {"a"});  // it has come once; that is enough
  expect_woken(all(3, TorchOp::kSet, {"b"}, {""}), {1, 2});
  EXPECT_EQ(state_.num_waiting(), 0U);
  EXPECT_EQ(own(1, TorchOp::kWait, {"b"}), kTorchStop);
  EXPECT_EQ(own(1, TorchOp::kWait, {}), kTorchStop);
}

TEST_F(TorchStates, EachWayToSetAKeyWakes) {
  const std::vector<std::pair<TorchOp, Texts>> ways = {{TorchOp::kSet, {""}},
                                                       {TorchOp::kMultiSet, {""}},
                                                       {TorchOp::kAppend, {""}},
                                                       {TorchOp::kCompareSet, {"", "x"}},
                                                       {TorchOp::kQueuePush, {""}}};
  for (size_t i = 0; i < ways.size(); ++i) {
    const std::string key = std::to_string(i);
    own(1, TorchOp::kWait, {key});
    expect_woken({all(2, ways[i].first, {key}, ways[i].second).front()}, {1});
  }
  own(1, TorchOp::kWait, {"n"});
  EXPECT_EQ(all(2, TorchOp::kAdd, {"n"}, {}, 0).size(), 2U);
}

TEST_F(TorchStates, AFailedCompareSetWakesNobody) {
  own(1, TorchOp::kWait, {"k"});
  EXPECT_EQ(own(2, TorchOp::kCompareSet, {"k"}, {"old", "new"}), sized("old"));
  EXPECT_EQ(state_.num_waiting(), 1U);
}

TEST_F(TorchStates, AWaitCanBeCanceled) {
  own(1, TorchOp::kWait, {"a", "b"});
  own(2, TorchOp::kWait, {"a"});
  EXPECT_EQ(own(1, TorchOp::kCancelWait), kTorchCanceled);
  EXPECT_EQ(own(1, TorchOp::kCancelWait), kTorchCanceled) << "also where there is none";
  expect_woken(all(3, TorchOp::kSet, {"a"}, {""}), {2});
  own(4, TorchOp::kWait, {"c"});
  state_.drop(4);
  expect_woken(all(3, TorchOp::kSet, {"c"}, {""}), {});
}

TEST_F(TorchStates, AWaitCostsMemoryUntilItsEnd) {
  own(1, TorchOp::kWait, {"a", "bb"});
  own(2, TorchOp::kWait, {"a"});
  EXPECT_EQ(state_.waiting_bytes(1), 3 + 2 * kTorchEntryBytes);
  EXPECT_EQ(state_.waiting_bytes(3), 0U);
  own(1, TorchOp::kWait, {"c"});
  EXPECT_EQ(state_.waiting_bytes(1), 1 + kTorchEntryBytes) << "it replaces the other";
  own(1, TorchOp::kCancelWait);
  EXPECT_EQ(state_.waiting_bytes(1), 0U);
  all(3, TorchOp::kSet, {"a"}, {""});
  EXPECT_EQ(state_.waiting_bytes(2), 0U);
}

TEST_F(TorchStates, AnElementOfAQueueWakesOneClient) {
  own(1, TorchOp::kWait, {"q"});
  own(2, TorchOp::kWait, {"q"});
  expect_woken(all(3, TorchOp::kQueuePush, {"q"}, {"a"}), {1});
  expect_woken(all(3, TorchOp::kQueuePush, {"q"}, {"b"}), {2});
  EXPECT_EQ(own(3, TorchOp::kQueueLen, {"q"}), raw(int64_t{2}));
  EXPECT_EQ(own(3, TorchOp::kCheck, {"q"}), kTorchStop);
  EXPECT_EQ(own(1, TorchOp::kQueuePop, {"q"}), raw(int64_t{2}) + sized("a"));
  EXPECT_EQ(own(2, TorchOp::kQueuePop, {"q"}), raw(int64_t{1}) + sized("b"));
  EXPECT_EQ(own(2, TorchOp::kQueuePop, {"q"}), raw(int64_t{0}));
  EXPECT_EQ(own(2, TorchOp::kQueueLen, {"q"}), raw(int64_t{0}));
  EXPECT_EQ(own(3, TorchOp::kNumKeys), raw(int64_t{0})) << "a queue is no key";
  EXPECT_EQ(state_.bytes(), 0U);
}

TEST_F(TorchStates, AWaitForAQueueAndAKeyEndsWithBoth) {
  own(1, TorchOp::kWait, {"q", "k"});
  expect_woken(all(2, TorchOp::kQueuePush, {"q"}, {"a"}), {});
  expect_woken(all(2, TorchOp::kSet, {"k"}, {""}), {1});
  own(1, TorchOp::kWait, {"q", "l"});
  expect_woken(all(2, TorchOp::kSet, {"l"}, {""}), {1});
}

TEST_F(TorchStates, ABarrierEndsWithItsLastClient) {
  EXPECT_EQ(own(1, TorchOp::kBarrier, {"b"}, {}, 3), "");
  EXPECT_EQ(own(2, TorchOp::kBarrier, {"b"}, {}, 3), "");
  expect_woken(all(3, TorchOp::kBarrier, {"b"}, {}, 3), {1, 2, 3});
  EXPECT_EQ(get("b"), sized("3"));
}

TEST(TorchState, TheStoreHasABound) {
  constexpr size_t kMost = 10 + kTorchEntryBytes;
  TorchState state(kMost);
  const auto submit = [&](TorchOp op, const std::string& key, const Texts& values) {
    state.submit(1, {op, {key}, values, 1});
  };
  submit(TorchOp::kSet, "key", {"0123456"});
  EXPECT_EQ(state.bytes(), kMost);
  for (const auto& [op, values] : std::vector<std::pair<TorchOp, Texts>>{
           {TorchOp::kSet, {""}}, {TorchOp::kQueuePush, {""}}, {TorchOp::kAdd, {}}}) {
    const Error error = error_of([&, op = op, values = values] { submit(op, "x", values); });
    EXPECT_STREQ(error.what(), "the store would have more than 110 bytes");
  }
  submit(TorchOp::kDeleteKey, "key", {});
  EXPECT_EQ(state.bytes(), 0U);
}

/// Also what is replaced, appended and taken out again.
TEST_F(TorchStates, BytesAreCounted) {
  own(1, TorchOp::kSet, {"key"}, {"012"});
  own(1, TorchOp::kSet, {"key"}, {"4"});
  own(1, TorchOp::kAppend, {"key"}, {"56"});
  EXPECT_EQ(state_.bytes(), 6 + kTorchEntryBytes);
  own(1, TorchOp::kAdd, {"key"}, {}, 10000);
  EXPECT_EQ(get("key"), sized("10456"));
  EXPECT_EQ(state_.bytes(), 8 + kTorchEntryBytes);
  own(1, TorchOp::kQueuePush, {"q"}, {"ab"});
  EXPECT_EQ(state_.bytes(), 11 + 2 * kTorchEntryBytes);
  own(1, TorchOp::kQueuePop, {"q"});
  own(1, TorchOp::kDeleteKey, {"key"});
  EXPECT_EQ(state_.bytes(), 0U);
}

TEST_F(TorchStates, AReplyHasABound) {
  const std::string big(kMaxTorchValueBytes, 'v');
  own(1, TorchOp::kSet, {"k"}, {big});
  EXPECT_EQ(own(1, TorchOp::kMultiGet, Texts(7, "k")).size(), 7 * (big.size() + 8));
  const Error error = error_of([&] { own(1, TorchOp::kMultiGet, Texts(9, "k")); });
  EXPECT_STREQ(error.what(), "it asks for more than 67108864 bytes");
}

}  // namespace
}  // namespace lockstep
