// lockstep ps, stop, logs and inspect for ranks without an agent, end to end.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "lockstep/base/proc.h"
#include "lockstep/deadline.h"
#include "tests/launch/launched.h"
#include "tests/support/held_port.h"
#include "tests/support/namespaces.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

class OtherLaunchers : public ::testing::Test {
 protected:
  /// A list of jobs for this test alone.
  std::map<std::string, std::string> variables() const {
    return {{"LOCKSTEP_JOBS_DIR", folder_ / "jobs"}};
  }
  /// Starts rank `rank` of `size` as a script would; it waits.
  std::unique_ptr<Launched> rank(int rank, int size = 2, const Words& more = {},
                                 Words words = {}) const {
    auto all = variables();
    all["RANK"] = std::to_string(rank);
    all["WORLD_SIZE"] = std::to_string(size);
    all["MASTER_ADDR"] = "127.0.0.1";
    all["MASTER_PORT"] = std::to_string(port_.number());
    words.push_back(built_program("group_holder"));
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<Launched>(words, all);
  }
  std::string said(const Words& words, int code = 0) const {
    Launched verb(words, variables());
    EXPECT_EQ(verb.wait(), code) << verb.err();
    return verb.out() + verb.err();
  }
  nlohmann::json listed() const { return nlohmann::json::parse(said({"ps", "--json"})); }
  std::string id() const { return "env-" + std::to_string(port_.number()); }

  const TempFolder folder_;
  const HeldPort port_;
};

TEST_F(OtherLaunchers, RanksOfAScriptAreListedUntilTheirEnd) {
  const auto one = rank(0);
  const auto two = rank(1);
  ASSERT_TRUE(one->wait_for("holding")) << one->err();
  ASSERT_TRUE(two->wait_for("holding")) << two->err();
  const auto list = listed();
  ASSERT_EQ(list.size(), 1U) << list;
  EXPECT_EQ(list[0]["run_id"], id());
  EXPECT_EQ(list[0]["launcher"], "environment variables");
  EXPECT_EQ(list[0]["ranks"], nlohmann::json({0, 1}));
  EXPECT_EQ(list[0]["pids"], nlohmann::json({one->pid(), two->pid()}));
  EXPECT_EQ(list[0]["world_size"], 2);
  EXPECT_EQ(list[0]["command"], nlohmann::json({built_program("group_holder")}));
  EXPECT_LT(list[0]["seconds"], 60);
  const auto table = lines_of(said({"ps"}));
  ASSERT_EQ(table.size(), 2U);
  EXPECT_TRUE(table[0].starts_with("RUN ") && has(table[0], " LAUNCHER ")) << table[0];
  EXPECT_TRUE(table[1].starts_with(id() + "  ")) << table[1];
  EXPECT_TRUE(has(table[1], "  0-1 of 2  ")) << table[1];

  two->send(SIGKILL);
  EXPECT_EQ(two->wait(), 137);
  EXPECT_EQ(listed()[0]["ranks"], nlohmann::json(std::vector<int>{0})) << "the other lives";
  one->send(SIGKILL);
  EXPECT_EQ(one->wait(), 137);
  EXPECT_EQ(listed().size(), 0U);
  EXPECT_EQ(lines_of(said({"ps"})).size(), 1U);
}

TEST_F(OtherLaunchers, TheirStepsAreShown) {
  const auto one = rank(0, 2, {"steps"});
  const auto two = rank(1, 2, {"steps"});
  ASSERT_TRUE(one->wait_for("holding")) << one->err();
  ASSERT_TRUE(two->wait_for("holding")) << two->err();
  const auto list = listed();
  ASSERT_EQ(list.size(), 1U) << list;
  EXPECT_EQ(list[0]["step"], 812) << "rank 0's, and not its child's: " << list;
  EXPECT_EQ(list[0]["total_steps"], 5000);
  EXPECT_EQ(list[0]["loss"], 1.25);
  EXPECT_EQ(list[0]["seconds_left"], 440);
  const auto table = lines_of(said({"ps"}));
  ASSERT_EQ(table.size(), 2U);
  EXPECT_TRUE(has(table[0], "  STEP           LOSS  LEFT  NOTE")) << table[0];
  EXPECT_TRUE(has(table[1], "  812/5000 16 %  1.25  7:20  ")) << table[1];
  one->send(SIGKILL);
  EXPECT_EQ(one->wait(), 137);
  EXPECT_EQ(listed()[0]["step"], 813) << "rank 1's";
}

TEST_F(OtherLaunchers, VerbsKnowThemAndEndNone) {
  const auto one = rank(0);
  const auto two = rank(1);
  ASSERT_TRUE(one->wait_for("holding") && two->wait_for("holding"));
  const std::string both = said({"inspect", id()});
  EXPECT_TRUE(has(both, std::to_string(one->pid())) && has(both, std::to_string(two->pid())))
      << both;
  const std::string pids = std::to_string(one->pid()) + " " + std::to_string(two->pid());
  for (const std::string& name : {id(), std::to_string(two->pid())}) {
    EXPECT_EQ(said({"stop", name}, 2),
              "lockstep stop: error: a script that sets RANK and WORLD_SIZE started job " + id() +
                  ", not lockstep run; end it with: kill " + pids + "\n");
    EXPECT_TRUE(has(said({"logs", name}, 2), "started job " + id() + ", not lockstep run; "));
  }
  EXPECT_TRUE(has(said({"stop", "env"}, 2), "no job of this user runs on this host"));
  EXPECT_EQ(said({"stop", "--all"}), "");
  EXPECT_EQ(listed().size(), 1U) << "it still runs";
}

TEST_F(OtherLaunchers, InspectShowsADeadRankOnce) {
  std::vector<std::unique_ptr<Launched>> ranks;
  for (int each = 0; each < 3; ++each) ranks.push_back(rank(each, 3));
  for (const auto& each : ranks) ASSERT_TRUE(each->wait_for("holding")) << each->err();
  ranks[1]->send(SIGKILL);
  EXPECT_EQ(ranks[1]->wait(), 137);
  const std::string table = said({"inspect", id()});
  const std::string dead = std::to_string(ranks[1]->pid());
  const size_t first = table.find(dead);
  ASSERT_NE(first, std::string::npos) << table;
  int rows = 0;
  for (const std::string& line : lines_of(table)) rows += has(line, " " + dead + " ") ? 1 : 0;
  EXPECT_EQ(rows, 1) << table;
}

TEST_F(OtherLaunchers, AWholeIdCountsBeforeTheBeginningOfAnother) {
  const auto one = rank(0, 1);
  ASSERT_TRUE(one->wait_for("holding")) << one->err();
  const std::string name = listed()[0]["run_id"];
  Launched run({"run", "--rdzv_id", name + "2", "--nproc_per_node", "1", "--",
                built_program("group_holder")},
               variables());
  ASSERT_TRUE(run.wait_for("holding")) << run.err();
  const auto deadline = Deadline::after(60s);
  while (listed().size() < 2 && !deadline.passed()) {
  }
  EXPECT_TRUE(has(said({"stop", name}, 2), "started job " + name)) << "not " << name << "2";
  EXPECT_TRUE(has(said({"logs", name}, 2), "started job " + name));
  EXPECT_TRUE(has(said({"inspect", name}), std::to_string(one->pid())));
  EXPECT_EQ(listed().size(), 2U) << "both run";
}

TEST_F(OtherLaunchers, ARankAloneIsAJob) {
  Launched alone({built_program("group_holder")}, variables());
  ASSERT_TRUE(alone.wait_for("holding")) << alone.err();
  const auto list = listed();
  ASSERT_EQ(list.size(), 1U) << list;
  EXPECT_EQ(list[0]["launcher"], "none");
  EXPECT_EQ(list[0]["run_id"], std::to_string(alone.pid()));
}

TEST_F(OtherLaunchers, RanksOfAProgramThatSpawnsThemAreAJob) {
  for (const char* how : {"processes", "threads"}) {
    Launched program({built_program("group_holder"), "spawn", how}, variables());
    ASSERT_TRUE(program.wait_for("holding", 2)) << program.err();
    const auto list = listed();
    ASSERT_EQ(list.size(), 1U) << list;
    EXPECT_EQ(list[0]["launcher"], "spawn()");
    EXPECT_EQ(list[0]["run_id"], "spawn-" + std::to_string(program.pid()));
    EXPECT_EQ(list[0]["ranks"], nlohmann::json({0, 1}));
    EXPECT_EQ(list[0]["num_nodes"], 1);
    // Of processes only rank 1 has made a step, of threads only rank 0 reports.
    EXPECT_EQ(list[0]["step"], std::string(how) == "threads" ? 812 : 813) << how;
    program.send(SIGKILL);
    program.wait();
    ASSERT_TRUE(program.wait_all_gone());
  }
}

TEST_F(OtherLaunchers, RanksOfContainersAreListedByTheirNumbersHereAsRoot) {
  LOCKSTEP_NEED_NAMESPACES();
  const Words container = {"/usr/bin/unshare", "--user",       "--map-root-user", "--pid",
                           "--fork",           "--kill-child", "--mount-proc"};
  const auto one = rank(0, 2, {"steps"}, container);
  const auto two = rank(1, 2, {"steps"}, container);
  // Each is process 1 of its own namespace.
  ASSERT_TRUE(one->wait_for("holding 1\n")) << one->err();
  ASSERT_TRUE(two->wait_for("holding 1\n")) << two->err();
  const auto list = listed();
  ASSERT_EQ(list.size(), 1U) << list;
  EXPECT_EQ(list[0]["run_id"], id());
  EXPECT_EQ(list[0]["ranks"], nlohmann::json({0, 1}));
  EXPECT_EQ(list[0]["step"], 812);
  const std::string table = said({"inspect", id()});
  EXPECT_FALSE(has(table, "dead") || has(table, "no record")) << table;
  for (const size_t each : {0U, 1U}) {
    const int pid = list[0]["pids"][each];
    const auto stat = stat_fields(pid);
    ASSERT_GT(stat.size(), 1U) << list;
    EXPECT_EQ(stat[1], std::to_string((each == 0 ? one : two)->pid())) << "unshare started it";
    EXPECT_TRUE(has(table, " " + std::to_string(pid) + "  ")) << table;
  }
}

TEST_F(OtherLaunchers, InspectInAContainerCallsNoRankOfAnotherDeadAsRoot) {
  LOCKSTEP_NEED_NAMESPACES();
  const std::string flight = folder_ / "flight";
  std::filesystem::create_directory(flight);
  const Words container = {"/usr/bin/unshare", "--user",       "--map-root-user", "--pid",
                           "--fork",           "--kill-child", "--mount-proc"};
  Words recorded = container;
  recorded.insert(recorded.end(), {"/usr/bin/env", "LOCKSTEP_FLIGHT_DIR=" + flight});
  const auto one = rank(0, 2, {"skip"}, recorded);
  const auto two = rank(1, 2, {"skip"}, recorded);
  ASSERT_TRUE(one->wait_for("holding 1\n")) << one->err();
  ASSERT_TRUE(two->wait_for("holding 1\n")) << two->err();
  EXPECT_EQ(said({"inspect", flight}).find("alive or dead"), std::string::npos);

  Words inspect = container;
  inspect.insert(inspect.end(), {built_program("lockstep"), "inspect", flight});
  std::string table = said(inspect);
  const auto deadline = Deadline::after(60s);
  while (!has(table, "1 behind") && !deadline.passed()) table = said(inspect);
  EXPECT_TRUE(has(table, "<- 1 behind\n")) << "without a state of the process: " << table;
  EXPECT_FALSE(has(table, "<- dead") || has(table, "stack of")) << table;
  EXPECT_TRUE(has(table, "lockstep: ranks 0, 1 may be alive or dead: ")) << table;
}

TEST_F(OtherLaunchers, WorkersOfAnAgentAreListedOnce) {
  Launched run({"run", "--nproc_per_node", "2", "--", built_program("group_holder")}, variables());
  ASSERT_TRUE(run.wait_for("holding", 2)) << run.err();
  auto list = listed();
  // On a busy machine the agent lists itself later than its workers are seen.
  const auto has_agent = [&] {
    return std::any_of(list.begin(), list.end(),
                       [&](const auto& job) { return job["pid"] == run.pid(); });
  };
  const auto deadline = Deadline::after(60s);
  while (!has_agent() && !deadline.passed()) list = listed();
  ASSERT_EQ(list.size(), 1U) << list;
  EXPECT_EQ(list[0]["launcher"], "lockstep");
  EXPECT_EQ(list[0]["pid"], run.pid());
}

TEST_F(OtherLaunchers, WhatKeepsItsListToItselfIsNotInOthers) {
  Launched alone({built_program("group_holder")}, {{"LOCKSTEP_JOBS_DIR", folder_ / "others"}});
  ASSERT_TRUE(alone.wait_for("holding")) << alone.err();
  EXPECT_EQ(listed().size(), 0U);
}

}  // namespace
}  // namespace lockstep::testing
