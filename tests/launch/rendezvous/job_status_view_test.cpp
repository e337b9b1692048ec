// Which records an agent accepts.

#include "lockstep/launch/rendezvous/job_status_view.h"

#include <gtest/gtest.h>

#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/launch/rendezvous/leader.h"
#include "lockstep/launch/rendezvous/silence.h"
#include "lockstep/store/memory/memory_store.h"

namespace lockstep::testing {
namespace {

using State = JobRecord::State;

Store::Change record(const std::string& by, State state) {
  JobRecord record;
  record.by = by;
  record.state = state;
  return {keys::kRecord, to_json(record)};
}
Store::Change leader(const std::optional<std::string>& term) {
  return {keys::kLeader, term};
}

TEST(JobStatusView, OnlyThePresentLeaderIsBelieved) {
  JobStatusView view("me");
  view.take({record("old", State::kRunning)});
  EXPECT_FALSE(view.record());
  view.take({leader("new")});
  EXPECT_FALSE(view.record());
  view.take({record("new", State::kForming)});
  EXPECT_TRUE(view.record());
  view.take({leader(std::nullopt)});
  EXPECT_FALSE(view.record());
  view.take({record("next", State::kRunning), leader("next")});
  EXPECT_TRUE(view.record());
}

TEST(JobStatusView, TheEndIsBelievedWhenItsLeaderHasGone) {
  JobStatusView view("me");
  view.take({record("a", State::kRunning), leader("a")});
  view.take({record("a", State::kEnded), leader(std::nullopt)});
  ASSERT_TRUE(view.record());
  EXPECT_EQ(view.record()->state, State::kEnded);
  JobStatusView stranger("other");
  stranger.take({record("a", State::kEnded)});
  EXPECT_FALSE(stranger.record()) << "that of an earlier job";
}

TEST(JobStatusView, RefusalsAreForOne) {
  const RefuseAgent refusal{"me", ErrorCode::kInvalidArgument, "no room"};
  JobStatusView me("me");
  JobStatusView other("other");
  for (JobStatusView* view : {&me, &other}) view->take({{keys::refused("me"), to_json(refusal)}});
  ASSERT_TRUE(me.refused());
  EXPECT_EQ(me.refused()->code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(me.refused()->what(), "no room");
  EXPECT_FALSE(other.refused());
}

TEST(JobStatusView, ManyAgentsSendFewerHeartbeats) {
  using std::chrono::milliseconds;
  EXPECT_EQ(heartbeat_interval(milliseconds(200), 2), milliseconds(200));
  EXPECT_EQ(heartbeat_interval(milliseconds(200), 2000), milliseconds(200));
  EXPECT_EQ(heartbeat_interval(milliseconds(200), 10000), milliseconds(1000));
}

TEST(Leader, ClearsWhatAnEarlierJobLeft) {
  const auto store = make_memory_store();
  const auto soon = Deadline::after(std::chrono::seconds(30));
  store->set(keys::assignment("gone"), "x", soon);
  store->set(keys::failure(1), "x", soon);
  store->set(keys::kMoved, "x", soon);
  store->set(keys::kRecord, record("gone", State::kEnded).value.value(), soon);
  MembershipRules rules;
  rules.max_nodes = rules.min_nodes = 1;
  rules.term = "mine";
  Leader lead(store, rules);
  lead.begin(store->watch(keys::kLive, 0, soon).changes);
  EXPECT_FALSE(store->try_get(keys::assignment("gone"), soon));
  EXPECT_FALSE(store->try_get(keys::failure(1), soon));
  EXPECT_FALSE(store->try_get(keys::kMoved, soon));
  EXPECT_EQ(job_record_from_json(store->get(keys::kRecord, soon)).state, State::kForming);
  JoinRequest request;
  request.term = "mine";
  lead.take({{keys::agent("me"), to_json(request)}});
  EXPECT_EQ(host_assignment_from_json(store->get(keys::assignment("me"), soon)).generation, 1);
  const auto running = job_record_from_json(store->get(keys::kRecord, soon));
  EXPECT_EQ(running.state, State::kRunning);
  EXPECT_EQ(running.by, "mine");
  // An agent with invalid messages is left out.
  lead.take({{keys::agent("fool"), "{}"}, {keys::failure(1), "nonsense"}});
  EXPECT_TRUE(lead.running());
}

}  // namespace
}  // namespace lockstep::testing
