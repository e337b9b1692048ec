// Ranks forked from one process of their program, end to end.

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "lockstep/error.h"
#include "lockstep/launch/job/host_resources.h"
#include "lockstep/world/fork_server/fork_server_message.h"
#include "tests/launch/elastic_job.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

Words fork_server_worker(int ranks, const Words& arguments, const Words& options = {}) {
  Words words = {"run", "--nproc_per_node", std::to_string(ranks)};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back("--");
  words.push_back(built_program("fork_server_worker"));
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

TEST(ForkServerNote, MarksProgramsThatCallIt) {
  EXPECT_TRUE(supports_fork_server(built_program("fork_server_worker")));
  EXPECT_FALSE(supports_fork_server(built_program("world_worker")));
  EXPECT_FALSE(supports_fork_server(built_program("lockstep")));
  EXPECT_FALSE(supports_fork_server("/bin/sh"));
  EXPECT_FALSE(supports_fork_server("/etc/passwd"));
  EXPECT_FALSE(supports_fork_server("/no/such/file"));
}

TEST(ForkServer, RanksAreAsIfTheAgentHadStartedThem) {
  Launched run(fork_server_worker(3, {"", ""}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  for (const char* rank : {"0", "1", "2"}) {
    const std::string r = rank;
    EXPECT_EQ(
        times_in(run.out(), "[" + r + "] forked rank " + r +
                                " of 3 attempt 0 agent parent session own dies by 9 own number "
                                "yes server fd -\n"),
        1)
        << run.out();
    EXPECT_EQ(times_in(run.err(), "[" + r + "] err " + r + "\n"), 1) << run.err();
  }
  EXPECT_EQ(times_in(run.out(), "prepared\n"), 1) << "once, by the process that is loaded";
  EXPECT_EQ(times_in(run.out(), "by the process"), 1) << "and no rank says again what it has said";
  EXPECT_TRUE(run.alive().empty());
}

TEST(ForkServer, IsSwitchedOffByTheEnvironmentAndForALoneRank) {
  Launched off(fork_server_worker(2, {"", ""}), {{"LOCKSTEP_FORK_SERVER", "0"}});
  EXPECT_EQ(off.wait(), 0) << off.err();
  EXPECT_EQ(times_in(off.out(), "loaded rank"), 2) << off.out();
  Launched neither(fork_server_worker(2, {"", ""}), {{"LOCKSTEP_FORK_SERVER", "no"}});
  EXPECT_EQ(neither.wait(), 2) << neither.err();
  EXPECT_TRUE(has(neither.err(), "variable LOCKSTEP_FORK_SERVER: 'no' is not 0 or 1"));
  Launched lone(fork_server_worker(1, {"", ""}));
  EXPECT_EQ(lone.wait(), 0) << lone.err();
  EXPECT_EQ(times_in(lone.out(), "loaded rank"), 1) << lone.out();
  EXPECT_EQ(times_in(lone.out(), "prepared"), 0) << lone.out();
}

TEST(ForkServer, RanksAreBoundToTheirCoresEachByItself) {
  std::vector<std::vector<int>> expected;
  try {
    expected = cpus_of_ranks(read_cpu_topology("", usable_cpus(), {}), CoreBinding::kExclusive, 2);
  } catch (const Error&) {
    expected = {usable_cpus(), usable_cpus()};  // with one core there is nothing to divide
  }
  const std::string kind = usable_cpus().size() > expected[0].size() ? "exclusive" : "node";
  Launched run(fork_server_worker(2, {"", "cores"}, {"--numa_binding", kind}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(times_in(run.out(), "forked rank"), 2) << run.out();
  for (size_t rank = 0; rank < 2; ++rank) {
    const auto list = cpu_list(expected[rank]);
    EXPECT_TRUE(
        has(run.out(), "rank " + std::to_string(rank) + " may run on " + list + " of " + list))
        << run.out();
  }
}

TEST(ForkServer, ARestartForksAgain) {
  Launched run(fork_server_worker(2, {"", "kill"}, {"--max_restarts", "1"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(times_in(run.out(), "forked rank 0 of 2 attempt 0"), 1) << run.out();
  EXPECT_EQ(times_in(run.out(), "forked rank 0 of 2 attempt 1"), 1) << run.out();
  EXPECT_EQ(times_in(run.out(), "forked rank 1 of 2 attempt 1"), 1) << run.out();
  EXPECT_EQ(times_in(run.out(), "prepared"), 1) << run.out();
  EXPECT_TRUE(run.alive().empty());
}

TEST(ForkServer, WithoutTheProcessTheyComeFromRanksAreStartedOneByOne) {
  Launched run(fork_server_worker(2, {"", "orphan"}, {"--max_restarts", "1"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(times_in(run.out(), "forked rank"), 2) << run.out();
  EXPECT_EQ(times_in(run.out(), "loaded rank 0 of 2 attempt 1"), 1) << run.out();
  EXPECT_EQ(times_in(run.out(), "loaded rank 1 of 2 attempt 1"), 1) << run.out();
  EXPECT_EQ(times_in(run.err(), "ranks are started one by one"), 1) << run.err();
}

TEST(ForkServer, AProgramThatDoesNotKeepItsWordIsStartedAsAnyOther) {
  for (const char* fault : {"thread", "exit", "late"}) {
    SCOPED_TRACE(fault);
    Launched run(fork_server_worker(2, {fault, ""}));
    EXPECT_EQ(run.wait(), 0) << run.err();
    EXPECT_EQ(times_in(run.out(), "loaded rank"), 2) << run.out();
    EXPECT_EQ(times_in(run.err(), "ranks are started one by one"), 1) << run.err();
    EXPECT_EQ(has(run.err(), "it has 2 threads before start_fork_server()"),
              std::string(fault) == "thread")
        << run.err();
  }
}

TEST(ForkServer, NobodyOutlivesAKilledAgent) {
  Launched run(fork_server_worker(3, {"", "hang"}));
  ASSERT_TRUE(run.wait_for("forked rank", 3));
  run.send(SIGKILL);
  EXPECT_EQ(run.wait(), 137);
  EXPECT_TRUE(run.wait_all_gone());
}

// ---- nodes that wait for others

Words elastic_worker(const std::string& act) {
  return {built_program("fork_server_worker"), "", act};
}

TEST(ForkServerWait, ANodeLoadsItsProgramWhileItWaitsForOthers) {
  const ElasticJob job("2", {"--nproc_per_node", "2"});
  const auto a = job.agent("a", elastic_worker(""));
  ASSERT_TRUE(a->wait_for("prepared")) << text_of(*a);
  EXPECT_EQ(times_in(text_of(*a), " rank "), 0) << "nobody else is here yet";
  const auto b = job.agent("b", elastic_worker(""));
  for (const auto& run : {a.get(), b.get()}) {
    EXPECT_EQ(run->wait(), 0) << text_of(*run);
    EXPECT_EQ(times_in(run->out(), "prepared\n"), 1) << run->out();
    EXPECT_EQ(times_in(run->out(), "forked rank"), 2) << run->out();
    EXPECT_EQ(times_in(run->out(), "server fd -"), 2) << run->out();
    EXPECT_TRUE(run->alive().empty());
  }
}

TEST(ForkServerWait, ASpareHasLoadedItsProgram) {
  const ElasticJob job("1:2");
  const auto a = job.first("a", elastic_worker("hang"));
  ASSERT_TRUE(a->wait_for("forked rank 0 of 1")) << text_of(*a);
  const auto b = job.agent("b", elastic_worker("hang"));
  ASSERT_TRUE(b->wait_for("of 2")) << text_of(*b);
  const auto spare = job.agent("c", elastic_worker("hang"));
  ASSERT_TRUE(spare->wait_for("prepared")) << text_of(*spare);
  ASSERT_TRUE(spare->wait_for("waits to take the place of another")) << text_of(*spare);
  b->send(SIGKILL);
  ASSERT_TRUE(spare->wait_for("forked rank")) << text_of(*spare);
  EXPECT_EQ(times_in(spare->out(), "prepared"), 1) << spare->out();
  EXPECT_TRUE(b->wait_all_gone());
}

TEST(ForkServerWait, ASpareThatWasNotNeededEndsWithWhatItHasLoaded) {
  const TempFolder folder;
  const std::string go = folder.path() / "go";
  const ElasticJob job("2:2");
  const Words work = {"/bin/sh", "-c",
                      "echo at work; until [ -e " + go + " ]; do sleep 0.05; done"};
  const auto a = job.agent("a", work);
  const auto b = job.agent("b", work);
  ASSERT_TRUE(a->wait_for("at work")) << text_of(*a);
  const auto spare = job.agent("c", elastic_worker("hang"), {"--role", "spare"});
  ASSERT_TRUE(spare->wait_for("prepared")) << text_of(*spare);
  ASSERT_TRUE(spare->wait_for("waits to take the place of another")) << text_of(*spare);
  std::ofstream(go).put('\n');
  EXPECT_EQ(spare->wait(), 0) << text_of(*spare);
  EXPECT_TRUE(has(text_of(*spare), "has ended well, without this host")) << text_of(*spare);
  EXPECT_EQ(times_in(spare->out(), "forked rank"), 0) << spare->out();
  EXPECT_TRUE(spare->alive().empty());
}

TEST(ForkServerWait, ASignalEndsANodeThatWaits) {
  for (const int signal : {SIGTERM, SIGINT, SIGKILL}) {
    const ElasticJob job("2");
    const auto waits = job.agent("a", elastic_worker(""));
    ASSERT_TRUE(waits->wait_for("prepared")) << text_of(*waits);
    waits->send(signal);
    EXPECT_EQ(waits->wait(), 128 + signal) << text_of(*waits);
    EXPECT_TRUE(waits->wait_all_gone()) << "what it had loaded ends too";
  }
}

TEST(ForkServerWait, WhatIsLoadedEndsWhenNobodyComes) {
  const ElasticJob job("2", {"--rdzv_conf", "join_timeout=1"});
  const auto waits = job.agent("a", elastic_worker("hang"));
  EXPECT_EQ(waits->wait(), 1) << text_of(*waits);
  EXPECT_TRUE(waits->alive().empty());
}

TEST(ForkServer, ASignalDoesNotWaitForAProgramThatLoads) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Launched run(fork_server_worker(2, {"load", ""}));
    ASSERT_TRUE(run.wait_for("loading"));
    run.send(signal);
    EXPECT_EQ(run.wait(), 128 + signal) << run.err();
    EXPECT_EQ(times_in(run.out(), "loading"), 1) << "no rank is started any more";
    EXPECT_EQ(run.err(), "");
    EXPECT_TRUE(run.alive().empty());
  }
}

TEST(ForkServer, ASignalEndsRanksAsEver) {
  Launched run(fork_server_worker(2, {"", "hang"}));
  ASSERT_TRUE(run.wait_for("err ", 2));
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 143);
  EXPECT_TRUE(run.alive().empty());
}

}  // namespace
}  // namespace lockstep::testing
