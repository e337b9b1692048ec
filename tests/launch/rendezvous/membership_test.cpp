// The decisions of a job's leader, event by event.

#include "lockstep/launch/rendezvous/membership.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "lockstep/launch/rendezvous/admission.h"
#include "tests/launch/rendezvous/simulated_job.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

MembershipRules nodes(int min, int max, int restarts = 0) {
  MembershipRules rules;
  rules.min_nodes = min;
  rules.max_nodes = max;
  rules.max_restarts = restarts;
  rules.endpoint = "meet:29400";
  return rules;
}

MembershipRules ranked(int count, int restarts = 0) {
  MembershipRules rules = nodes(count, count, restarts);
  rules.fixed_ranks = true;
  return rules;
}

TEST(Membership, AllThatCanComeBeginAtOnce) {
  SimulatedJob job(nodes(1, 2));
  job.come("a");
  EXPECT_FALSE(job.running());
  job.come("b");
  EXPECT_EQ(job.ranks(), "a0 b1");
  EXPECT_EQ(job.record.generation, 1);
}

TEST(Membership, WithTheLeastTheGraceIsWaitedFor) {
  SimulatedJob job(nodes(2, 4));
  job.come("a");
  job.pass(100s);
  job.come("b");
  job.pass(2999ms);
  EXPECT_FALSE(job.running());
  job.come("c");  // does not prolong it
  job.pass(1ms);
  EXPECT_EQ(job.ranks(), "a0 b1 c2");
}

TEST(Membership, OneThatLeavesDuringTheGraceBeginsItAnew) {
  SimulatedJob job(nodes(2, 4));
  job.come("a");
  job.come("b");
  job.pass(2s);
  job.lose("b");
  job.pass(10s);
  EXPECT_FALSE(job.running());
  job.come("c");
  job.pass(2s);
  EXPECT_FALSE(job.running());
  job.pass(1s);
  EXPECT_EQ(job.ranks(), "a0 c1");
}

TEST(Membership, TooFewEndTheJobInTheEnd) {
  SimulatedJob job(nodes(3, 4));
  job.come("a");
  job.come("b");
  job.pass(5s);
  EXPECT_EQ(job.record.awaited, "2 of 3:4 hosts are here; waiting for 1 more at meet:29400");
  job.pass(594s);
  EXPECT_TRUE(job.forming());
  job.pass(1s);
  ASSERT_TRUE(job.ended());
  EXPECT_EQ(job.record.failure->cause, "2 of at least 3 hosts came to meet:29400 within 600 s");
  EXPECT_EQ(job.record.failure->status.code, 1);
}

TEST(Membership, ThoseWithGivenRanksAreNamed) {
  SimulatedJob job(ranked(4));
  job.come_ranked("x", 2);
  job.pass(5s);
  EXPECT_EQ(job.record.awaited, "1 of 4 hosts are here; waiting for host 0, 1, 3 at meet:29400");
  job.come_ranked("y", 0);
  job.pass(5s);
  EXPECT_EQ(job.record.awaited, "2 of 4 hosts are here; waiting for host 1, 3 at meet:29400");
  const int said = job.num_records;
  job.pass(60s);  // the same text is not published again
  EXPECT_EQ(job.num_records, said);
  job.pass(600s);
  EXPECT_EQ(job.record.failure->cause, "host 1, 3 of 4 did not come to meet:29400 within 600 s");
}

TEST(Membership, GivenRanksAreKeptToTheLetter) {
  SimulatedJob job(ranked(3));
  job.come_ranked("x", 2);
  job.come_ranked("y", 0);
  job.come_ranked("z", 0);
  ASSERT_EQ(job.refused.size(), 1U);
  EXPECT_EQ(job.refused[0].id, "z");
  EXPECT_EQ(job.refused[0].why, "--node_rank 0 is taken by an agent on host-y");
  job.come_ranked("w", 1);
  EXPECT_EQ(job.ranks(), "w1 x2 y0");
}

TEST(Membership, ARankThatWasLostCanBeTakenAgain) {
  SimulatedJob job(ranked(2));
  job.come_ranked("x", 1);
  job.lose("x");
  job.come_ranked("y", 1);
  job.come_ranked("z", 0);
  EXPECT_TRUE(job.refused.empty());
  EXPECT_EQ(job.ranks(), "y1 z0");
}

TEST(Membership, AnAgentOfAnotherSecretIsRefused) {
  MembershipRules rules = nodes(1, 2);
  rules.mark = secret_mark("ours");
  SimulatedJob job(rules);
  job.come("a", [&](JoinRequest* request) { request->mark = rules.mark; });
  job.come("b", [](JoinRequest* request) { request->mark = secret_mark("theirs"); });
  job.come("c", [](JoinRequest* request) { request->mark = secret_mark("ours", Wire::kTls); });
  ASSERT_EQ(job.refused.size(), 2U);
  EXPECT_EQ(job.refused[0].code, ErrorCode::kInvalidArgument);
  EXPECT_NE(job.refused[0].why.find("LOCKSTEP_SECRET"), std::string::npos);
  job.pass(3s);
  EXPECT_EQ(job.ranks(), "a0");
}

TEST(Membership, AnAgentOfAnotherProgramIsRefusedInTheSameRoleOnly) {
  MembershipRules rules = nodes(1, 3);
  rules.own.role = "default";
  rules.own.program = "train.py";
  SimulatedJob job(rules);
  const auto come = [&](const std::string& id, const char* role, const char* program) {
    job.come(id, [&](JoinRequest* request) {
      request->role = role;
      request->program = program;
    });
  };
  come("a", "default", "train.py");
  come("b", "default", "other.py");
  come("c", "reader", "read.py");
  ASSERT_EQ(job.refused.size(), 1U);
  EXPECT_EQ(job.refused[0].code, ErrorCode::kInvalidArgument);
  EXPECT_NE(job.refused[0].why.find("host (host-b) was started to run other.py, the job of this "
                                    "name at meet:29400 runs train.py"),
            std::string::npos)
      << job.refused[0].why;
  job.pass(3s);
  EXPECT_EQ(job.ranks(), "a0 c1");
}

/// An agent on that host, started with that command.
auto started(const std::string& host_id, const std::string& command, bool named = false) {
  return [=](JoinRequest* request) {
    request->host_id = host_id;
    request->command = command;
    request->folder = "/work";
    request->named = named;
  };
}

std::string ids_of(const std::vector<RefuseAgent>& refused) {
  std::string ids;
  for (const RefuseAgent& each : refused) ids += each.id;
  return ids;
}

TEST(Membership, AnotherCommandOnOneHostIsOfAnotherJob) {
  SimulatedJob job(nodes(1, 4));
  job.come("a", started("one", "train A"));
  job.come("b", started("one", "train B"));
  job.come("c", started("two", "train B"));  // perhaps new arguments, host by host
  job.come("d", [](JoinRequest* request) {
    started("one", "train A")(request);
    request->folder = "/elsewhere";
  });
  job.come("e", started("one", "train A"));
  EXPECT_EQ(ids_of(job.refused), "bd");
  EXPECT_EQ(job.refused[0].code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(job.refused[0].why,
            "the job of this name at meet:29400 has an agent on this host with other arguments or "
            "in another folder: give each job an --rdzv_id and an --rdzv_endpoint of its own, or "
            "all agents of one job the same --rdzv_id");
  job.pass(3s);
  EXPECT_EQ(job.ranks(), "a0 c1 e2");
}

TEST(Membership, ASecondJobThatComesBeforeTheLeadersOwnAgentIsRefused) {
  MembershipRules rules = nodes(1, 2);
  started("one", "train A")(&rules.own);
  SimulatedJob job(rules);
  job.come("b", started("one", "train B"));
  job.come("a", started("one", "train A"));
  EXPECT_EQ(ids_of(job.refused), "b");
}

TEST(Membership, ANameARoleOrItsPastMakesAnAgentOneOfTheJob) {
  SimulatedJob job(nodes(1, 9));
  job.come("a", started("one", "train A", true));
  job.come("b", started("one", "train B", true));
  job.come("c", [](JoinRequest* request) {
    started("one", "read")(request);
    request->role = "reader";
  });
  job.come("d", [](JoinRequest* request) {
    started("one", "train D")(request);
    request->generation = 3;
  });
  job.come("e", started("one", ""));    // of another build
  job.come("f", started("", "train"));  // its host is unknown
  EXPECT_EQ(ids_of(job.refused), "");
  job.come("g", started("one", "train G"));
  EXPECT_EQ(ids_of(job.refused), "g");
}

TEST(Membership, AnAgentThatLeavesOrIsGoneMakesRoomForAnotherCommand) {
  SimulatedJob job(nodes(1, 4));
  job.come("a", started("one", "train A"));
  job.stop_by_user("a", SIGTERM);
  job.come("b", started("one", "train B"));
  job.lose("b");
  job.come("c", started("one", "train C"));
  EXPECT_EQ(ids_of(job.refused), "");
}

TEST(Membership, AtAGoodEndAnAgentThatRanNothingAndIsNoSpareLearnsWhy) {
  MembershipRules rules = nodes(2, 2);
  rules.own.command = "train";
  SimulatedJob job(rules);
  job.come("a", started("one", "train"));
  job.come("b", started("two", "train"));
  job.come("c", started("one", "train"));    // started twice
  job.come("d", started("three", "train"));  // a spare
  job.come("e", started("four", "test"));
  job.come("f", [](JoinRequest* request) {
    started("two", "read")(request);
    request->role = "reader";
  });
  EXPECT_EQ(job.ranks(), "a0 b1");
  job.done("a");
  job.done("b");
  EXPECT_TRUE(job.ended());
  EXPECT_FALSE(job.record.failure);
  ASSERT_EQ(ids_of(job.refused), "ce");
  EXPECT_EQ(job.refused[0].why,
            "the job of this name at meet:29400 has ended well without this agent, as another "
            "agent of this host took part in it: give each job an --rdzv_id and an "
            "--rdzv_endpoint of its own");
  EXPECT_NE(job.refused[1].why.find("which was started with other arguments"), std::string::npos);
}

TEST(Membership, ASpareOfANamedJobMayBeOnTheHostOfAnother) {
  SimulatedJob job(nodes(1, 1));
  job.come("a", started("one", "train", true));
  job.come("b", started("one", "train", true));
  job.done("a");
  EXPECT_TRUE(job.ended());
  EXPECT_EQ(ids_of(job.refused), "");
}

TEST(Membership, WhoTakesPartWithOtherArgumentsWarns) {
  JobRecord record;
  record.role = "default";
  record.command = "train A";
  JoinRequest own;
  own.role = "default";
  own.command = "train A";
  EXPECT_FALSE(difference_text(record, own));
  own.command = "train B";
  ASSERT_TRUE(difference_text(record, own));
  EXPECT_NE(difference_text(record, own)->find("--rdzv_id"), std::string::npos);
  own.named = record.named = true;
  EXPECT_FALSE(difference_text(record, own));
  own.named = false;
  own.role = "reader";
  EXPECT_FALSE(difference_text(record, own));
}

TEST(Membership, DisagreementAboutTheNumberOfNodes) {
  SimulatedJob fixed(ranked(2));
  fixed.come_ranked("a", 0);
  fixed.come("b", [](JoinRequest* request) {
    request->node_rank = 1;
    request->min_nodes = request->max_nodes = 3;
  });
  ASSERT_TRUE(fixed.ended());
  EXPECT_EQ(fixed.record.failure->cause,
            "host 1 (host-b) was started with --nnodes 3, the job at meet:29400 with 2");

  SimulatedJob job(nodes(1, 2));
  job.come("a");
  job.come("b", [](JoinRequest* request) { request->max_nodes = 5; });
  ASSERT_EQ(job.refused.size(), 1U);
  EXPECT_EQ(job.refused[0].code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(job.refused[0].why,
            "host (host-b) was started with --nnodes 1:5, the job at meet:29400 with 1:2");
  job.pass(3s);
  EXPECT_EQ(job.ranks(), "a0");
}

TEST(Membership, UnevenNodesAndRoles) {
  SimulatedJob job(nodes(3, 3));
  const auto with = [](int ranks, const char* role) {
    return [=](JoinRequest* request) {
      request->local_size = ranks;
      request->role = role;
      request->store_port = 1000 + ranks;
      request->torch_port = 2000 + ranks;
      request->takeover_port = 3000 + ranks;
    };
  };
  job.come("a", with(2, "t"));
  job.come("b", with(3, "e"));
  job.come("c", with(4, "t"));
  const HostAssignment& assignment = *job.nodes.at("c").assignment;
  EXPECT_EQ(assignment.world_size, 9);
  EXPECT_EQ(assignment.num_nodes, 3);
  EXPECT_EQ(assignment.ranks.first_rank, 5);
  EXPECT_EQ(assignment.ranks.local_size, 4);
  EXPECT_EQ(assignment.ranks.first_role_rank, 2);
  EXPECT_EQ(assignment.ranks.role_size, 6);
  EXPECT_EQ(to_string(assignment.store), "a.example:1002");
  EXPECT_EQ(to_string(assignment.torch), "a.example:2002");
  ASSERT_EQ(assignment.successors.size(), 3U);
  EXPECT_EQ(to_string(assignment.successors[1]), "b.example:3003");
}

TEST(Membership, AllDoneIsTheEnd) {
  SimulatedJob job(nodes(2, 2));
  job.come("a");
  job.come("b");
  job.done("b");
  EXPECT_TRUE(job.running());
  job.done("a");
  ASSERT_TRUE(job.ended());
  EXPECT_FALSE(job.record.failure);
}

TEST(Membership, OneThatIsDoneMayGo) {
  SimulatedJob job(nodes(2, 2));
  job.come("a");
  job.come("b");
  job.done("b");
  job.lose("b");
  EXPECT_TRUE(job.running());
  job.done("a");
  EXPECT_TRUE(job.ended() && !job.record.failure);
}

TEST(Membership, AFailureWithoutRestartsIsTheEnd) {
  SimulatedJob job(nodes(2, 2));
  job.come("a");
  job.come("b");
  job.fail("b", 7);
  ASSERT_TRUE(job.ended());
  EXPECT_EQ(job.record.failure->status.code, 7);
  EXPECT_EQ(job.record.failure->host, "host-b");
}

TEST(Membership, RestartsAreCountedAndRanksKept) {
  SimulatedJob job(nodes(2, 2, 2));
  job.come("b");
  job.come("a");
  EXPECT_EQ(job.ranks(), "a1 b0");
  for (int restart = 1; restart <= 2; ++restart) {
    job.fail("a", 0, SIGKILL);
    EXPECT_TRUE(job.leaving());
    EXPECT_EQ(job.record.failure->status.signal, SIGKILL);
    job.end_workers("a");
    EXPECT_TRUE(job.leaving()) << "b's workers still run";
    job.end_workers("b");
    job.pass(1s);
    EXPECT_EQ(job.ranks(), "a1 b0");
    EXPECT_EQ(job.record.generation, restart + 1);
    EXPECT_EQ(job.record.restart_count, restart);
    EXPECT_EQ(job.nodes.at("a").assignment->restart_count, restart);
    EXPECT_FALSE(job.record.failure);
  }
  job.fail("b", 3);
  ASSERT_TRUE(job.ended());
  EXPECT_EQ(job.record.failure->status.code, 3);
}

TEST(Membership, AUsageErrorIsNotTriedAgain) {
  SimulatedJob job(nodes(1, 2, 5));
  job.come("a");
  job.come("b");
  job.fail("b", 2);
  ASSERT_TRUE(job.ended());
  EXPECT_EQ(job.record.failure->status.code, 2);
}

TEST(Membership, OfWorkersThatAreBeingEndedAFailureIsNone) {
  SimulatedJob job(nodes(1, 2, 1));
  job.come("a");
  job.come("b");
  job.fail("a");
  job.fail("b", 2);
  EXPECT_TRUE(job.leaving());
  job.end_workers();
  EXPECT_EQ(job.record.restart_count, 1);
  EXPECT_EQ(job.ranks(), "a0 b1");
}

TEST(Membership, ANodeThatIsLostCostsNoRestart) {
  SimulatedJob job(nodes(1, 3));
  job.come("a");
  job.come("b");
  job.come("c");
  job.lose("a");
  EXPECT_TRUE(job.leaving());
  job.end_workers();
  EXPECT_EQ(job.ranks(), "b1 c0") << "b keeps its rank";
  EXPECT_EQ(job.record.restart_count, 0);
  EXPECT_EQ(job.record.generation, 2);
}

TEST(Membership, FailuresThatALostNodeExplainsAreNotCounted) {
  SimulatedJob job(nodes(1, 2));
  job.come("a");
  job.come("b");
  job.fail("b");  // it noticed a's end before the leader did
  EXPECT_TRUE(job.leaving());
  job.lose("a");
  job.end_workers();
  EXPECT_EQ(job.ranks(), "b0");
  job.fail("b", 9);
  job.end_workers();
  ASSERT_TRUE(job.ended());
  EXPECT_EQ(job.record.failure->status.code, 9);
}

TEST(Membership, AFixedJobEndsWithTheLossOfANode) {
  SimulatedJob job(ranked(2));
  job.come_ranked("a", 0);
  job.come_ranked("b", 1);
  job.lose("a");
  job.pass(999ms);
  EXPECT_TRUE(job.running()) << "perhaps only its connection ended";
  job.pass(1ms);
  ASSERT_TRUE(job.ended());
  EXPECT_EQ(job.record.failure->cause, "the agent of host 0 (host-a) died or cannot be reached");
  EXPECT_EQ(job.record.failure->status.code, 1);
}

TEST(Membership, WhoComesBackInTimeGoesOnInAFixedJob) {
  SimulatedJob job(ranked(2));
  job.come_ranked("a", 0);
  job.come_ranked("b", 1);
  const JoinRequest before = job.nodes.at("b").request;
  job.lose("b");
  job.pass(500ms);
  job.come("b", [&](JoinRequest* request) { *request = before; });
  EXPECT_TRUE(job.refused.empty());
  job.pass(60s);
  EXPECT_TRUE(job.running());
  EXPECT_EQ(job.record.generation, 1);
  job.done("a");
  job.done("b");
  EXPECT_TRUE(job.ended() && !job.record.failure);
}

TEST(Membership, AMissingNodeExplainsTheFailuresOfAFixedJob) {
  SimulatedJob job(ranked(2));
  job.come_ranked("a", 0);
  job.come_ranked("b", 1);
  job.lose("b");
  job.fail("a", 134);
  ASSERT_TRUE(job.ended());
  EXPECT_EQ(job.record.failure->cause, "the agent of host 1 (host-b) died or cannot be reached");
}

/// Another part may have enough nodes, and does not learn when these workers are gone.
TEST(Membership, TooFewKillTheirWorkersAtOnce) {
  SimulatedJob job(nodes(2, 3));
  for (const char* id : {"a", "b", "c"}) job.come(id);
  job.lose("b");
  ASSERT_TRUE(job.leaving());
  EXPECT_FALSE(job.record.at_once) << "two may go on here";
  job.lose("c");
  EXPECT_TRUE(job.record.at_once);
  job.end_workers();
  EXPECT_TRUE(job.record.at_once) << "who missed the record before reads this one";
  job.come("d");
  job.pass(10s);
  EXPECT_EQ(job.ranks(), "a0 d1");
  EXPECT_FALSE(job.record.at_once);
}

TEST(Membership, AfterASilentLeaderNoGenerationBeginsTooEarly) {
  MembershipRules rules = nodes(1, 4);
  rules.not_before = JobTime{} + 2500ms;
  SimulatedJob job(rules);
  job.come("b", [](JoinRequest* request) {
    request->generation = 6;
    request->last_rank = 0;
    request->num_nodes = 2;
  });
  EXPECT_FALSE(job.running()) << "all that are expected are here, but the other may have workers";
  job.pass(2499ms);
  EXPECT_FALSE(job.running());
  job.pass(1000ms);
  EXPECT_EQ(job.ranks(), "b0");
}

TEST(Membership, FailuresInARowArePausedAfter) {
  SimulatedJob job(nodes(2, 2, 9));
  job.come("a");
  job.come("b");
  job.fail("a");
  job.end_workers();
  EXPECT_TRUE(job.running()) << "the first is tried again at once";
  for (const auto pause : {1000ms, 2000ms, 4000ms}) {
    job.fail("b");
    job.end_workers();
    job.pass(pause - 1ms);
    EXPECT_TRUE(job.forming());
    job.pass(1ms);
    EXPECT_EQ(job.ranks(), "a0 b1");
  }
}

TEST(Membership, AFixedJobWithRestartsWaitsForTheNodeToComeBack) {
  SimulatedJob job(ranked(2, 1));
  job.come_ranked("a", 0);
  job.come_ranked("b", 1);
  job.lose("a");
  job.end_workers();
  EXPECT_TRUE(job.forming());
  EXPECT_EQ(job.record.why, "the agent of host 0 (host-a) died or cannot be reached")
      << "who was done may have missed the record before";
  job.pass(100s);
  EXPECT_EQ(job.record.awaited,
            "1 of 2 hosts are here; waiting for host 0 at meet:29400; gone: host-a");
  job.come_ranked("a2", 0);
  EXPECT_EQ(job.record.why, "");
  EXPECT_EQ(job.ranks(), "a20 b1");
  EXPECT_EQ(job.record.restart_count, 0);
}

TEST(Membership, NewcomersComeTogether) {
  SimulatedJob job(nodes(1, 4));
  job.come("a");
  job.pass(3s);
  EXPECT_EQ(job.ranks(), "a0");
  job.come("b");
  job.pass(900ms);
  job.come("c");
  EXPECT_TRUE(job.running());
  job.pass(100ms);
  EXPECT_TRUE(job.leaving());
  EXPECT_FALSE(job.record.failure);
  job.end_workers();
  EXPECT_EQ(job.ranks(), "a0 b1 c2");
  EXPECT_EQ(job.record.restart_count, 0);
}

TEST(Membership, ANewcomerThatGoesAgainDisturbsNobody) {
  SimulatedJob job(nodes(1, 4));
  job.come("a");
  job.pass(3s);
  job.come("b");
  job.lose("b");
  job.pass(60s);
  EXPECT_EQ(job.record.generation, 1);
  EXPECT_TRUE(job.running());
}

TEST(Membership, ASpareTakesTheNextFreePlace) {
  SimulatedJob job(nodes(1, 2));
  job.come("a");
  job.come("b");
  job.come("c");
  job.pass(60s);
  EXPECT_EQ(job.ranks(), "a0 b1");
  job.lose("a");
  job.end_workers();
  EXPECT_EQ(job.ranks(), "b1 c0");
}

TEST(Membership, NobodyJoinsAJobThatIsPartlyDone) {
  SimulatedJob job(nodes(1, 3));
  job.come("a");
  job.come("b");
  job.pass(3s);
  job.done("a");
  job.come("c");
  job.pass(60s);
  EXPECT_TRUE(job.running());
  job.done("b");
  EXPECT_TRUE(job.ended() && !job.record.failure);
}

TEST(Membership, WhoIsEndedByItsUserLeaves) {
  SimulatedJob job(nodes(1, 3));
  for (const char* id : {"a", "b", "c"}) job.come(id);
  job.stop_by_user("b", SIGTERM);
  EXPECT_TRUE(job.leaving());
  job.end_workers();
  EXPECT_EQ(job.ranks(), "a0 c1");
  job.lose("b");
  EXPECT_EQ(job.record.generation, 2);
  EXPECT_TRUE(job.running());
}

TEST(Membership, WithTooFewLeftTheUsersSignalEndsTheJob) {
  SimulatedJob job(nodes(2, 3, 4));
  for (const char* id : {"a", "b", "c"}) job.come(id);
  job.stop_by_user("b", SIGTERM);
  job.stop_by_user("c", SIGTERM);
  job.end_workers();
  ASSERT_TRUE(job.ended());
  EXPECT_EQ(job.record.failure->status.signal, SIGTERM);
  EXPECT_EQ(job.record.failure->cause, "host 2 (host-c): was ended by SIGTERM");

  SimulatedJob fixed(ranked(2));
  fixed.come_ranked("a", 0);
  fixed.come_ranked("b", 1);
  fixed.stop_by_user("a", SIGINT);
  ASSERT_TRUE(fixed.ended());
  EXPECT_EQ(fixed.record.failure->cause, "host 0 (host-a): was ended by SIGINT");
}

TEST(Membership, AWishForANodeRankIsGrantedWhereItCanBe) {
  SimulatedJob job(nodes(3, 3));
  job.come_ranked("a", 1);
  job.come_ranked("b", 1);
  job.come_ranked("c", 7);
  EXPECT_EQ(job.ranks(), "a1 b0 c2");
}

/// As after a lost connection that was back before the leader noticed.
TEST(Membership, WorkersThatAreGoneWithoutAFailureEndTheirGeneration) {
  SimulatedJob job(nodes(2, 2, 1));
  job.come("a");
  job.come("b");
  job.end_workers("b");
  ASSERT_TRUE(job.leaving());
  EXPECT_EQ(job.record.why, "the workers of host 1 (host-b) ended; its agent gave no reason");
  job.end_workers("a");
  EXPECT_EQ(job.ranks(), "a0 b1");
  EXPECT_EQ(job.record.generation, 2);

  SimulatedJob fixed(nodes(2, 2));
  fixed.come("a");
  fixed.come("b");
  fixed.end_workers("b");
  ASSERT_TRUE(fixed.ended());
  EXPECT_EQ(fixed.record.failure->status.code, 1);
}

/// A member of generation 6, which had three nodes.
auto had(int rank, HostWork work) {
  return [=](JoinRequest* request) {
    request->generation = 6;
    request->last_rank = rank;
    request->num_nodes = 3;
    request->restart_count = 2;
    request->token = "first-leader";
    request->work = work;
  };
}

TEST(Membership, ANewLeaderWaitsForThoseItExpects) {
  SimulatedJob job(nodes(1, 4));
  job.come("c", had(2, HostWork::kIdle));
  EXPECT_FALSE(job.running());
  job.come("b", had(1, HostWork::kBusy));
  EXPECT_FALSE(job.running()) << "b's workers have to end first";
  job.end_workers("b");
  EXPECT_EQ(job.ranks(), "b1 c0") << "2 is no rank of two";
  EXPECT_EQ(job.record.generation, 7);
  EXPECT_EQ(job.record.restart_count, 2);
}

TEST(Membership, ANewLeaderKnowsThatTheJobMadeSteps) {
  SimulatedJob job(nodes(1, 2, 3));
  job.come("b", [](JoinRequest* request) {
    had(1, HostWork::kIdle)(request);
    request->stepped = true;
    request->early_failures = 1;
    request->failures_in_a_row = 2;
  });
  job.pass(10s);
  ASSERT_TRUE(job.running());
  const HostAssignment& assignment = *job.nodes.at("b").assignment;
  EXPECT_TRUE(assignment.stepped);
  EXPECT_EQ(assignment.early_failures, 1);
  EXPECT_EQ(assignment.failures_in_a_row, 2);
  // In a job without any step before, the second would be the last.
  for (int i = 0; i < 3; ++i) {
    job.fail_before_a_step("b");
    job.end_workers();
    job.pass(100s);
    ASSERT_TRUE(job.running()) << job.record.why;
  }
  EXPECT_EQ(job.record.restart_count, 2) << "these cost none";
}

TEST(Membership, StepsSinceTheAssignmentAreReported) {
  SimulatedJob job(nodes(1, 2, 3));
  job.come("b", [](JoinRequest* request) {
    had(1, HostWork::kBusy)(request);
    request->early_failures = 1;
  });
  job.nodes.at("b").request.stepped = true;
  job.end_workers("b");
  job.pass(10s);
  ASSERT_TRUE(job.running());
  EXPECT_TRUE(job.nodes.at("b").assignment->stepped);
}

TEST(Membership, HalvesOfAJobHaveTokensOfTheirOwn) {
  const auto token_with = [](const std::string& term, const std::string& before) {
    MembershipRules rules = nodes(1, 3);
    rules.term = term;
    SimulatedJob job(rules);
    job.come("b", [&](JoinRequest* request) {
      had(1, HostWork::kIdle)(request);
      request->token = before;
      if (before.empty()) request->generation = 0;
    });
    job.pass(10s);
    return job.nodes.at("b").assignment->token;
  };
  EXPECT_EQ(token_with("x", ""), "x-x");
  EXPECT_EQ(token_with("y", "x-x"), "x-y");
  EXPECT_EQ(token_with("z", "x-y"), "x-z");
}

TEST(Membership, ANewLeaderDoesNotWaitForEver) {
  SimulatedJob job(nodes(1, 4));
  job.come("b", had(1, HostWork::kIdle));
  job.pass(2999ms);
  EXPECT_FALSE(job.running());
  job.pass(1ms);
  EXPECT_EQ(job.ranks(), "b0");
}

TEST(Membership, HoweverShortTheLastCallANewLeaderLetsTheOthersSeeTheLoss) {
  MembershipRules rules = nodes(1, 4);
  rules.last_call_timeout = 300ms;
  SimulatedJob job(rules);
  job.come("b", had(1, HostWork::kIdle));
  job.pass(2999ms);
  EXPECT_FALSE(job.running());
  job.come("c", had(2, HostWork::kIdle));
  EXPECT_EQ(job.ranks(), "b1 c0");
}

// Killed agents leave keys for the rest of their leases, which end at different times.
TEST(Membership, WhatIsLeftOfAJobThatWasKilledIsNoPartOfTheNext) {
  SimulatedJob job(nodes(2, 2, 3));
  job.come("old", had(1, HostWork::kBusy));
  job.come("a");
  job.come("b");
  EXPECT_FALSE(job.running()) << "the old workers may still be there";
  job.lose("old");
  EXPECT_EQ(job.ranks(), "a0 b1");
  EXPECT_EQ(job.record.restart_count, 0) << "this job has not failed yet";
  EXPECT_EQ(job.record.generation, 7) << "above any that ever was";
  job.fail("a");
  job.end_workers();
  EXPECT_EQ(job.record.restart_count, 1);
}

// Its last word was that it has no workers, so nothing in its join request tells that it is dead.
TEST(Membership, AnAgentThatWroteInAnEarlierTermIsCountedOnceItHasWrittenAgain) {
  MembershipRules rules = nodes(2, 2, 3);
  rules.term = "second";
  const auto earlier = [](JoinRequest* request) {
    had(1, HostWork::kIdle)(request);
    request->term = "first";
  };
  SimulatedJob job(rules);
  job.come("old", earlier);
  job.come("a");
  job.pass(10s);
  EXPECT_FALSE(job.running()) << "its key may be left of a killed agent";
  job.come("b");
  job.pass(10s);
  EXPECT_FALSE(job.running()) << "with it the job would go on, without it another begins";
  job.lose("old");
  EXPECT_EQ(job.ranks(), "a0 b1");
  EXPECT_EQ(job.record.restart_count, 0);

  SimulatedJob other(rules);
  other.come("c", earlier);
  other.come("a");
  other.write_in_this_term("c");
  EXPECT_EQ(other.ranks(), "a0 c1");
  EXPECT_EQ(other.record.restart_count, 2) << "the job of c goes on";
}

TEST(Membership, WhoLeadsAgainWaitsForWhatIsWrittenInItsNewTerm) {
  MembershipRules rules = nodes(2, 2, 3);
  rules.term = "first";
  SimulatedJob job(rules);
  job.come("a");
  job.come("b");
  ASSERT_EQ(job.ranks(), "a0 b1");
  job.lead_again("second");
  job.end_workers();
  job.write_in_this_term("a");
  job.pass(10s);
  EXPECT_FALSE(job.running()) << "b may have been killed since it wrote";
  job.write_in_this_term("b");
  EXPECT_EQ(job.ranks(), "a0 b1");
  EXPECT_EQ(job.record.generation, 2);
}

TEST(Membership, AfterAKilledJobTheLastCallIsWaitedForAsInAnyFirstGeneration) {
  SimulatedJob job(nodes(1, 3));
  job.come("old", had(0, HostWork::kBusy));
  job.come("a");
  job.lose("old");
  job.pass(2999ms);
  EXPECT_FALSE(job.running());
  job.come("b");
  job.pass(1ms);
  EXPECT_EQ(job.ranks(), "a0 b1");
}

TEST(Membership, WhileOneOfAJobsAgentsIsHereItGoesOn) {
  SimulatedJob job(nodes(2, 3, 3));
  job.come("c", had(1, HostWork::kIdle));
  job.come("d", had(2, HostWork::kBusy));
  job.come("a");
  job.lose("d");
  job.pass(3s);
  EXPECT_EQ(job.ranks(), "a0 c1");
  EXPECT_EQ(job.record.restart_count, 2);
}

TEST(Membership, AJobKeepsItsLaunchAndALaterOneOfItsNameHasItsOwn) {
  auto rules = nodes(2, 2, 3);
  rules.term = "second";
  SimulatedJob goes_on(rules);
  goes_on.come("b", had(1, HostWork::kIdle));
  goes_on.come("a");
  ASSERT_EQ(goes_on.ranks(), "a0 b1");
  EXPECT_EQ(goes_on.nodes.at("a").assignment->token, "first-second");
  SimulatedJob anew(rules);
  anew.come("old", had(0, HostWork::kBusy));
  anew.come("a");
  anew.come("b");
  anew.lose("old");
  ASSERT_EQ(anew.ranks(), "a0 b1");
  EXPECT_EQ(anew.record.generation, 7);
  EXPECT_EQ(anew.nodes.at("a").assignment->token, "second-second");
}

TEST(Membership, AHalfThatComesBackHasToEndItsWorkersFirst) {
  SimulatedJob job(nodes(1, 4));
  job.come("a");
  job.pass(3s);
  job.come("b", [](JoinRequest* request) {
    request->generation = 8;
    request->last_rank = 0;
    request->work = HostWork::kBusy;
  });
  job.pass(60s);
  EXPECT_EQ(job.ranks(), "a0");
  job.end_workers("b");
  job.pass(1s);
  job.end_workers();
  EXPECT_EQ(job.ranks(), "a1 b0");
  EXPECT_EQ(job.record.generation, 9) << "above any that ever was";
}

}  // namespace
}  // namespace lockstep::testing
