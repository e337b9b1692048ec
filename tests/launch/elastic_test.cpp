// Jobs whose agents come, go and die: real processes on one host, each with a host id of its own.

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "tests/launch/elastic_job.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;
TEST(Elastic, AJobOfAllNodesEndsWell) {
  const ElasticJob job("1:2");
  const Words hello = {"/bin/sh", "-c", "echo rank $RANK of $WORLD_SIZE"};
  const auto a = job.agent("a", hello);
  const auto b = job.agent("b", hello);
  EXPECT_EQ(a->wait(), 0) << a->err();
  EXPECT_EQ(b->wait(), 0) << b->err();
  for (const auto* run : {a.get(), b.get()}) EXPECT_TRUE(has(run->out(), " of 2")) << run->out();
  EXPECT_TRUE(a->wait_all_gone() && b->wait_all_gone());
}

/// A third agent, on this host, waits while two work to a good end. It then ends with `code` and
/// these words.
void expect_end_of_third(const std::string& host, int code, const std::string& words) {
  const TempFolder folder;
  const std::string go = folder.path() / "go";
  const Words work = {"/bin/sh", "-c",
                      "echo at work; until [ -e " + go + " ]; do sleep 0.05; done"};
  const ElasticJob job("2:2");
  const auto a = job.agent("a", work);
  const auto b = job.agent("b", work);
  EXPECT_SAYS(a, "at work");
  const auto third = job.agent(host, work);
  EXPECT_SAYS(third, "waits to take the place of another");
  std::ofstream(go).put('\n');
  EXPECT_EQ(a->wait(), 0) << a->err();
  EXPECT_EQ(b->wait(), 0) << b->err();
  EXPECT_EQ(third->wait(), code) << third->err();
  EXPECT_TRUE(has(text_of(*third), words)) << text_of(*third);
}

TEST(Elastic, ASpareThatWasNotNeededEndsWell) {
  expect_end_of_third("c", 0, "has ended well, without this host");
}

TEST(Elastic, ACommandThatIsStartedTwiceOnAHostDoesNotEndWellWithoutARun) {
  expect_end_of_third("a", 2, "has ended well without this agent, as another agent of this host");
}

/// kSleeper with an argument.
Words sleeper_with(const std::string& argument) {
  Words words = kSleeper;
  words.push_back(argument);
  return words;
}

TEST(Elastic, ASecondJobOfOneProgramLeavesTheFirstInPeace) {
  const ElasticJob job("1:2");
  const auto a = job.first("a", sleeper_with("A.yaml"));
  EXPECT_SAYS(a, "world 1");
  const auto other = job.agent("a", sleeper_with("B.yaml"));
  EXPECT_EQ(other->wait(), 2) << other->err();
  EXPECT_TRUE(has(other->err(), "give each job an --rdzv_id")) << other->err();
  EXPECT_EQ(times_in(a->out(), "world "), 1) << text_of(*a);
  const auto changed = job.agent("b", sleeper_with("B.yaml"));
  EXPECT_SAYS(changed, "world 2");
  EXPECT_SAYS(changed, "started with other arguments than the job's leader");
}

TEST(Elastic, AgentsOfOneNameAndHostMayHaveArgumentsOfTheirOwn) {
  const ElasticJob job("2:2", {"--rdzv_id", "monday"});
  const auto a = job.agent("a", sleeper_with("--gpu=0"));
  const auto b = job.agent("a", sleeper_with("--gpu=1"));
  EXPECT_SAYS(a, "world 2");
  EXPECT_SAYS(b, "world 2");
  EXPECT_FALSE(has(text_of(*a) + text_of(*b), "other arguments"));
}

TEST(Elastic, NodesComeAndLeave) {
  const ElasticJob job("1:3");
  const auto a = job.first("a");
  EXPECT_SAYS(a, "world 1 rank 0 restart 0.");
  const auto b = job.agent("b");
  EXPECT_SAYS(a, "world 2 rank 0 restart 0.");
  EXPECT_SAYS(b, "world 2 rank 1 restart 0.");
  const auto c = job.agent("c");
  EXPECT_SAYS(c, "world 3 rank 2 restart 0.");
  for (const auto* joiner : {b.get(), c.get()})
    EXPECT_FALSE(has(joiner->err(), "to take the place of another")) << joiner->err();
  b->send(SIGTERM);
  EXPECT_EQ(b->wait(), 143) << b->err();
  EXPECT_SAYS(a, "world 2 rank 0 restart 0.", 2);
  EXPECT_SAYS(c, "world 2 rank 1 restart 0.");
}

TEST(Elastic, AKilledFollowerIsGoneAtOnce) {
  const ElasticJob job("1:2");
  const auto a = job.first("a");
  EXPECT_SAYS(a, "world 1");
  const auto b = job.agent("b");
  EXPECT_SAYS(b, "world 2 rank 1");
  EXPECT_SAYS(a, "world 2 rank 0");
  b->send(SIGKILL);
  EXPECT_SAYS(a, "world 1 rank 0 restart 0.", 2);
  EXPECT_TRUE(b->wait_all_gone());
}

TEST(Elastic, WhenTheServingAgentIsKilledAnotherServes) {
  const ElasticJob job("1:4");
  auto a = job.first("a");
  EXPECT_SAYS(a, "world 1");
  const auto b = job.agent("b");
  EXPECT_SAYS(b, "world 2 rank 1");
  const auto c = job.agent("c");
  EXPECT_SAYS(c, "world 3 rank 2");
  EXPECT_SAYS(b, "world 3 rank 1");
  a->send(SIGKILL);
  EXPECT_SAYS(b, "world 2 rank 1 restart 0.", 2);
  EXPECT_SAYS(c, "world 2 rank 0 restart 0.");
  // An agent that now comes to the endpoint is told where the job goes on.
  const auto d = job.agent("d");
  EXPECT_SAYS(d, "world 3 rank 2");
  EXPECT_SAYS(b, "world 3 rank 1", 2);
  // And so on.
  b->send(SIGKILL);
  EXPECT_SAYS(c, "world 2 rank 0", 2);
  EXPECT_SAYS(d, "world 2 rank 1");
}

TEST(Elastic, AStoppedAgentFindsItselfOutAndComesBack) {
  const ElasticJob job("1:2", {}, kTwoSeconds);
  const auto a = job.first("a");
  EXPECT_SAYS(a, "world 1");
  const auto b = job.agent("b");
  EXPECT_SAYS(b, "world 2 rank 1");
  EXPECT_SAYS(a, "world 2 rank 0");
  b->send(SIGSTOP);
  EXPECT_SAYS(a, "world 1 rank 0", 2);
  b->send(SIGCONT);
  EXPECT_SAYS(b, "world 2 rank 1", 2);
  EXPECT_SAYS(a, "world 2 rank 0", 2);
}

TEST(Elastic, AStoppedServerIsReplacedAndJoinsTheOthers) {
  const ElasticJob job("1:3", {}, kTwoSeconds);
  const auto a = job.first("a");
  EXPECT_SAYS(a, "world 1");
  const auto b = job.agent("b");
  EXPECT_SAYS(b, "world 2 rank 1");
  const auto c = job.agent("c");
  for (const auto* run : {&a, &b, &c}) EXPECT_SAYS(*run, "world 3 rank");
  a->send(SIGSTOP);
  EXPECT_SAYS(b, "world 2 rank", 2);
  EXPECT_SAYS(c, "world 2 rank", 1);
  a->send(SIGCONT);
  EXPECT_SAYS(a, "world 3 rank", 2);
  EXPECT_SAYS(b, "world 3 rank", 2);
  EXPECT_SAYS(c, "world 3 rank", 2);
}

// c takes b for dead and takes over, as b does later: no agent is at the endpoint to bring them
// together.
TEST(Elastic, TwoThatTookOverFindEachOther) {
  const ElasticJob job("1:3", {}, kTwoSeconds);
  const auto a = job.first("a");
  EXPECT_SAYS(a, "world 1");
  const auto b = job.agent("b");
  EXPECT_SAYS(b, "world 2 rank 1");
  const auto c = job.first("c");
  for (const auto* run : {&a, &b, &c}) EXPECT_SAYS(*run, "world 3 rank");
  b->send(SIGSTOP);
  a->send(SIGKILL);
  EXPECT_SAYS(c, "world 1 rank 0");
  b->send(SIGCONT);
  EXPECT_SAYS(b, "world 2 rank", 2);
  EXPECT_SAYS(c, "world 2 rank");
}

TEST(Elastic, FailuresAreCountedAndTheLastIsReported) {
  const ElasticJob job("2", {"--max_restarts", "1"});
  const TempFolder folder;
  // Rank 1 fails once rank 0 has said its line.
  const std::string said = folder.path().string() + "/$TORCHELASTIC_RESTART_COUNT";
  const Words breaks = {"/bin/sh", "-c",
                        "echo rank $RANK restart $TORCHELASTIC_RESTART_COUNT of "
                        "$TORCHELASTIC_MAX_RESTARTS.; if [ $RANK = 0 ]; then : > " +
                            said + "; else while [ ! -e " + said +
                            " ]; do sleep 0.01; done; exit 3; fi; exec sleep 600"};
  const auto a = job.agent("a", breaks);
  const auto b = job.agent("b", breaks);
  EXPECT_EQ(a->wait(), 3) << a->err();
  EXPECT_EQ(b->wait(), 3) << b->err();
  for (const auto* run : {a.get(), b.get()}) {
    EXPECT_TRUE(has(run->out(), " restart 0 of 1.")) << run->out();
    EXPECT_TRUE(has(run->out(), " restart 1 of 1.")) << run->out();
    EXPECT_TRUE(has(run->err(), "; restart 1 of 1")) << run->err();
    EXPECT_TRUE(has(run->err(), "rank 1 (host 1, ")) << run->err();
  }
}

// If node 1 is done before node 0 fails, nobody waits for it. It may see only the next generation,
// and must end the previous one all the same.
TEST(Elastic, ARestartedJobCanEndWell) {
  const ElasticJob job("2", {"--max_restarts", "3"});
  const Words once = {"/bin/sh", "-c",
                      "[ $TORCHELASTIC_RESTART_COUNT$RANK = 00 ] && kill -9 $$; exit 0"};
  const auto a = job.agent("a", once);
  const auto b = job.agent("b", once);
  EXPECT_EQ(a->wait(), 0) << a->err();
  EXPECT_EQ(b->wait(), 0) << b->err();
}

TEST(Elastic, AFixedNumberWaitsForALostNodeToComeBack) {
  const ElasticJob job("2", {"--max_restarts", "1"});
  const auto a = job.agent("a");
  const auto b = job.agent("b");
  EXPECT_SAYS(a, "world 2");
  EXPECT_SAYS(b, "world 2");
  b->send(SIGKILL);
  EXPECT_SAYS(a, "1 of 2 hosts are here; waiting for 1 more");
  const auto c = job.agent("c");
  EXPECT_SAYS(a, "world 2", 2);
  EXPECT_SAYS(c, "world 2 rank");
}

TEST(Elastic, ASpareTakesAPlaceThatBecomesFree) {
  const ElasticJob job("2:2", {"--max_restarts", "1"});
  const auto a = job.agent("a");
  const auto b = job.agent("b");
  EXPECT_SAYS(a, "world 2");
  EXPECT_SAYS(b, "world 2");
  const auto c = job.agent("c");
  EXPECT_SAYS(c, "waits to take the place of another");
  b->send(SIGKILL);
  EXPECT_SAYS(c, "world 2 rank");
  EXPECT_SAYS(a, "world 2", 2);
}

TEST(Elastic, WithTooFewLeftASignalEndsTheJob) {
  const ElasticJob job("2:3");
  const auto a = job.first("a");
  const auto b = job.first("b");
  EXPECT_SAYS(a, "world 2");
  EXPECT_SAYS(b, "world 2");
  a->send(SIGTERM);
  EXPECT_EQ(a->wait(), 143) << a->err();
  EXPECT_EQ(b->wait(), 143) << b->err();
  EXPECT_TRUE(has(b->err(), "was ended by SIGTERM")) << b->err();
}

TEST(Elastic, StrangersAreRefused) {
  const ElasticJob job("1:2", {"--rdzv_id", "monday"});
  const auto a = job.first("a");
  EXPECT_SAYS(a, "world 1");
  const auto other_job = job.agent("b", kSleeper, {"--rdzv_id", "tuesday"});
  EXPECT_EQ(other_job->wait(), 1);
  EXPECT_TRUE(has(other_job->err(), "are of job monday")) << other_job->err();
  const auto other_size = job.agent("b", kSleeper, {"--nnodes", "1:7"});
  EXPECT_EQ(other_size->wait(), 2);
  EXPECT_TRUE(has(other_size->err(), "was started with --nnodes 1:7, the job at "))
      << other_size->err();
  const auto other_program = job.agent("b", {"/bin/sleep", "600"});
  EXPECT_EQ(other_program->wait(), 2);
  EXPECT_TRUE(has(other_program->err(), "was started to run sleep, the job of this name at "))
      << other_program->err();
  const auto other_secret = job.agent("b", kSleeper, {}, "wrong");
  EXPECT_EQ(other_secret->wait(), 2);
  EXPECT_TRUE(has(other_secret->err(), "this job's secret")) << other_secret->err();
  EXPECT_TRUE(has(other_secret->err(), "secret from the variable LOCKSTEP_SECRET: compare"))
      << other_secret->err();
  EXPECT_EQ(times_in(a->out(), "world "), 1) << "it was left in peace" << text_of(*a);
}

TEST(Elastic, TheNextJobAtTheSameEndpointBeginsAnew) {
  const ElasticJob job("2", {"--rdzv_id", "same"});
  for (int i = 0; i < 3; ++i) {
    const Words ends = {"/bin/sh", "-c", "echo generation $LOCKSTEP_RESTART_COUNT; exit 0"};
    const auto a = job.agent("a", ends);
    const auto b = job.agent("b", ends);
    EXPECT_EQ(a->wait(), 0) << a->err();
    EXPECT_EQ(b->wait(), 0) << b->err();
  }
}

}  // namespace
}  // namespace lockstep::testing
