#include "lockstep/comm/native/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "lockstep/store/request_store.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

/// Does not answer, and does not make anybody wait for that.
class HangingStore final : public RequestStore {
 public:
  int questions = 0;
  std::chrono::milliseconds longest{};

 private:
  StoreReply call(StoreRequest /*request*/, Deadline deadline) override {
    ++questions;
    longest = std::max(longest, deadline.left());
    throw Error(ErrorCode::kTimeout, "no answer");
  }
  std::string name() const override { return "store that hangs"; }
};

// Else each collective in which a rank waits a while would take as long as the store may.
TEST(Search, AStoreThatHangsHoldsUpWhoWaitsOnceAndShortly) {
  const auto store = std::make_shared<HangingStore>();
  GroupSpec spec;
  spec.size = 2;
  spec.world_ranks = {0, 1};
  spec.store = store;
  Search search(spec);
  search.start_waiting();
  while (store->questions == 0) EXPECT_FALSE(search.alarm()());
  EXPECT_LE(store->longest, 500ms);
  search.start_waiting();  // the next collective
  const auto end = Deadline::after(3 * Search::kLook);
  while (!end.passed()) EXPECT_FALSE(search.alarm()());
  EXPECT_EQ(store->questions, 1);
}

}  // namespace
}  // namespace lockstep
