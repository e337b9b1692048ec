// The job's status, from an agent's membership thread to the agent's loop.

#include "lockstep/launch/rendezvous/agent_status.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/store/request_store.h"
#include "lockstep/store/store_state.h"

namespace lockstep::testing {
namespace {

JobEnd end_by_rank_one() {
  Failure failure;
  failure.host = "hosta";
  failure.rank = 1;
  failure.status.code = 3;
  return {failure, ""};
}

/// A store that can be too slow to answer.
class SlowStore final : public RequestStore {
 public:
  bool slow = false;

 private:
  StoreReply call(StoreRequest request, Deadline) override {
    if (slow) throw Error(ErrorCode::kTimeout, "the store does not answer");
    return state_.submit({1, ++last_}, std::move(request)).front().reply;
  }
  std::string name() const override { return "store"; }

  StoreState state_;
  uint64_t last_ = 0;
};

TEST(AgentStatus, AFailureThatASlowStoreDidNotTakeIsSaidAgain) {
  const auto store = std::make_shared<SlowStore>();
  const auto now = [] { return Deadline::after(std::chrono::seconds(1)); };
  AgentStatus standing("id", JoinRequest{});
  JobAssignment assignment;
  assignment.generation = 3;
  standing.take_assignment(assignment);
  standing.wait_for_assignment();
  standing.use(store);
  store->slow = true;
  standing.failed(*end_by_rank_one().failure);
  EXPECT_THROW(standing.publish_failure(now()), Error);
  store->slow = false;
  standing.publish_failure(now());
  EXPECT_TRUE(store->try_get(keys::failure(3), now()).has_value());
  store->erase(keys::failure(3), now());
  standing.publish_failure(now());
  EXPECT_FALSE(store->try_get(keys::failure(3), now()).has_value()) << "once is enough";
}

/// A store in which a call blocks, as for a service that is expected back.
class WaitingStore final : public RequestStore {
 public:
  void await_call() const {
    while (waiting_ == 0) std::this_thread::yield();
  }
  void go_on() { waits_ = false; }
  std::vector<std::string> values;  ///< Leased values; read it while nobody calls.

 private:
  StoreReply call(StoreRequest request, Deadline) override {
    ++waiting_;
    while (waits_) std::this_thread::yield();
    values.push_back(request.value);
    StoreReply reply;
    reply.yes = true;
    return reply;
  }
  std::string name() const override { return "store"; }

  std::atomic<bool> waits_ = true;
  std::atomic<int> waiting_ = 0;
};

TEST(AgentStatus, TheAgentsLoopDoesNotWaitForAHeartbeat) {
  const auto store = std::make_shared<WaitingStore>();
  AgentStatus standing("id", JoinRequest{});
  standing.use(store);
  const auto ttl = std::chrono::seconds(1);
  auto heartbeat = std::async(std::launch::async, [&] {
    return standing.publish(ttl, Deadline::after(std::chrono::seconds(60)));
  });
  store->await_call();
  auto leave = std::async(std::launch::async, [&] { standing.leave(15); });
  EXPECT_EQ(leave.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_FALSE(standing.publish(ttl, Deadline::after(std::chrono::seconds(60))))
      << "nobody knows whether the store that hangs takes it";
  store->go_on();
  EXPECT_EQ(heartbeat.get(), true);
  leave.get();
  ASSERT_EQ(store->values.size(), 2U) << "who was at it said it again";
  EXPECT_EQ(join_request_from_json(store->values[0]).leaving, 0);
  EXPECT_EQ(join_request_from_json(store->values[1]).leaving, 15);
}

TEST(AgentStatus, AFailureIsNotWrittenToAnotherStore) {
  AgentStatus standing("id", JoinRequest{});
  standing.take_assignment(JobAssignment{});
  standing.wait_for_assignment();
  const auto lost = std::make_shared<SlowStore>();
  lost->slow = true;
  standing.use(lost);
  standing.failed(*end_by_rank_one().failure);
  const auto next = std::make_shared<SlowStore>();
  const auto now = [] { return Deadline::after(std::chrono::seconds(1)); };
  standing.use(next);
  standing.publish_failure(now());
  EXPECT_TRUE(next->list("", now()).empty());
}

TEST(AgentStatus, AnEarlierTimeToBeGoneIsTaken) {
  AgentStatus standing("id", JoinRequest{});
  JobAssignment assignment;
  assignment.generation = 1;
  standing.take_assignment(assignment);
  standing.wait_for_assignment();
  const auto now = std::chrono::steady_clock::now();
  standing.stop_work(std::nullopt, "why");
  EXPECT_FALSE(standing.job_status().kill_by);
  standing.stop_work(std::nullopt, "later", now);
  EXPECT_EQ(standing.job_status().kill_by, now);
  EXPECT_EQ(standing.job_status().why, "why");
  standing.stop_work(std::nullopt, "later", now + std::chrono::seconds(1));
  EXPECT_EQ(standing.job_status().kill_by, now);
  assignment.generation = 2;
  standing.take_assignment(assignment);
  EXPECT_TRUE(standing.next());
  EXPECT_FALSE(standing.job_status().kill_by);
}

TEST(AgentStatus, OneThatWasNotNeededHearsThatAllIsWell) {
  AgentStatus standing("id", JoinRequest{});
  standing.end({std::nullopt, ""});
  EXPECT_FALSE(standing.wait_for_assignment().has_value());
}

TEST(AgentStatus, AJobThatEndsBeforeItsAssignmentIsFetchedEndsItsWorkers) {
  AgentStatus standing("id", JoinRequest{});
  JobAssignment assignment;
  assignment.generation = 1;
  standing.take_assignment(assignment);
  standing.end(end_by_rank_one());
  EXPECT_EQ(standing.wait_for_assignment().value().generation, 1);
  const JobStatus status = standing.job_status();
  ASSERT_TRUE(status.end && status.end->failure);
  EXPECT_EQ(status.end->failure->status.code, 3);
}

TEST(AgentStatus, AnEndIsNotForgottenForTheNextAssignment) {
  AgentStatus standing("id", JoinRequest{});
  standing.take_assignment(JobAssignment{});
  standing.wait_for_assignment();
  standing.take_assignment(JobAssignment{});
  standing.end(end_by_rank_one());
  EXPECT_TRUE(standing.next());
  EXPECT_TRUE(standing.job_status().end);
}

TEST(AgentStatus, OneThatNeverHadAPartIsToldWhatEndedTheJob) {
  AgentStatus standing("id", JoinRequest{});
  standing.end(end_by_rank_one());
  try {
    standing.wait_for_assignment();
    ADD_FAILURE() << "there is no assignment";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("without this host: rank 1 (hosta) failed: exit code 3"), std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace lockstep::testing
