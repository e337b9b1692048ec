#include "lockstep/comm/native/straggler_detection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/comm/group_error.h"
#include "lockstep/comm/look_pause.h"
#include "lockstep/store/request_store.h"
#include "tests/comm/support/timeless_store.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

/// A store that does not answer, and does not make its caller wait.
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

// All ranks' answers, for each of a thousand ranks, are too many for a store.
TEST(StragglerDetection, WhoFindsAGroupErrorDoesNotAskWhatAllRanksSay) {
  const auto store = std::make_shared<testing::TimelessStore>();
  const Error over(ErrorCode::kTimeout, "time is over");
  std::vector<std::string> errors;
  for (const int rank : {0, 2, 3}) {
    GroupSpec spec;
    spec.rank = rank;
    spec.size = 4;
    spec.world_ranks = {0, 1, 2, 3};
    spec.store = store;
    StragglerDetection detection(spec);
    EXPECT_EQ(detection.alarm()(), rank != 0) << "rank 0 begins";
    const Error error = detection.name_the_late(over, {1});
    errors.emplace_back(agree_on_group_error(spec, error, Deadline::after(1s)).what());
  }
  EXPECT_TRUE(errors[0].starts_with("rank 1 did not come in time")) << errors[0];
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(errors[2], errors[0]);
  EXPECT_EQ(store->watched, 1);
}

// Rank 1 waits for rank 0 on its host, which has the reason for its missing connection with rank 2.
TEST(StragglerDetection, WhatARankSaysThatWaitedForTheLateOneIsTold) {
  GroupSpec spec;
  spec.rank = 1;
  spec.size = 3;
  spec.name = "g";
  spec.world_ranks = {0, 1, 2};
  spec.store = std::make_shared<testing::TimelessStore>();
  spec.store->set("g/waited/0", "2\nconnection refused", Deadline::after(1s));
  StragglerDetection detection(spec);
  const Error error = detection.name_the_late(Error(ErrorCode::kTimeout, "rank 0 is late"), {0});
  EXPECT_STREQ(error.what(), "rank 2 did not come in time (rank 0 says: connection refused)");
}

// Its connections may tell it nothing: a link is cut, or a host has lost its power.
TEST(StragglerDetection, WhoWaitsInAGroupThatHasEndedHearsOfIt) {
  GroupSpec spec;
  spec.size = 2;
  spec.name = "g";
  spec.world_ranks = {0, 1};
  spec.store = std::make_shared<testing::TimelessStore>();
  StragglerDetection detection(spec);
  EXPECT_FALSE(detection.alarm()());
  GroupSpec part = spec;  // of one host
  part.rank = 1;
  part.name = "g/host1";
  part.whole = "g";
  agree_on_group_error(part, Error(ErrorCode::kPeerLost, "rank 2 died"), Deadline::after(1s));
  detection.start_waiting();
  const auto limit = Deadline::after(10s);
  while (!detection.alarm()() && !limit.passed()) std::this_thread::yield();
  EXPECT_FALSE(limit.passed());
}

// Otherwise each collective with a long wait would take as long as the store may.
TEST(StragglerDetection, AStoreThatHangsHoldsUpWhoWaitsOnceAndShortly) {
  const auto store = std::make_shared<HangingStore>();
  GroupSpec spec;
  spec.size = 2;
  spec.world_ranks = {0, 1};
  spec.store = store;
  StragglerDetection detection(spec);
  detection.start_waiting();
  while (store->questions == 0) EXPECT_FALSE(detection.alarm()());
  EXPECT_LE(store->longest, 500ms);
  detection.start_waiting();  // the next collective
  const auto end = Deadline::after(3 * kLookPause);
  while (!end.passed()) EXPECT_FALSE(detection.alarm()());
  EXPECT_EQ(store->questions, 1);
}

}  // namespace
}  // namespace lockstep
