#include "lockstep/comm/rank_answers.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/store/request_store.h"
#include "tests/comm/support/timeless_store.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using testing::TimelessStore;

Deadline in_time() {
  return Deadline::after(std::chrono::seconds(10));
}

/// A store whose server is gone.
class GoneStore final : public RequestStore {
 private:
  StoreReply call(StoreRequest /*request*/, Deadline /*deadline*/) override {
    throw Error(ErrorCode::kPeerLost, "gone");
  }
  std::string name() const override { return "store that is gone"; }
};

TEST(RankAnswers, KeysExistOnceAllOfThemDo) {
  TimelessStore store;
  const std::vector<std::string> keys = {"a/0", "a/1"};
  EXPECT_FALSE(exist_within(store, keys, in_time()));
  store.set("a/0", "", in_time());
  EXPECT_FALSE(exist_within(store, keys, in_time()));
  store.set("a/1", "", in_time());
  EXPECT_TRUE(exist_within(store, keys, in_time()));
  GoneStore gone;
  EXPECT_EQ(error_of([&] { exist_within(gone, keys, in_time()); }).code(), ErrorCode::kPeerLost);
}

TEST(RankAnswers, AreReadByRankInOneRequest) {
  TimelessStore store;
  store.set("a/0", "zero", in_time());
  store.set("a/10", "ten", in_time());
  store.set("a/2", "two", in_time());
  store.set("a/2/more", "of another reader", in_time());
  store.set("b/1", "another prefix", in_time());
  store.questions = 0;
  const auto answers = answers_by_rank(store, "a/", 11, in_time());
  EXPECT_EQ(store.questions, 1);
  std::vector<std::optional<std::string>> expected(11);
  expected[0] = "zero";
  expected[2] = "two";
  expected[10] = "ten";
  EXPECT_EQ(answers, expected);
}

}  // namespace
}  // namespace lockstep
