// Programs that know their rank without an agent, end to end.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "lockstep/world/cpu_topology.h"
#include "tests/launch/launched.h"
#include "tests/support/held_port.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using Variables = std::map<std::string, std::string>;

TEST(Join, RanksThatTheProgramGivesItself) {
  const HeldPort port;
  const auto rank = [&](const char* number) {
    return std::make_unique<Launched>(std::vector<std::string>{
        built_program("world_worker"), number, "2", std::to_string(port.number())});
  };
  const auto first = rank("0");
  const auto second = rank("1");
  EXPECT_EQ(first->wait(), 0) << first->err();
  EXPECT_EQ(second->wait(), 0) << second->err();
  EXPECT_TRUE(has(second->out(), "rank 1/2 local 1/2 node 0/1 by arguments")) << second->out();
}

// PyTorch's four variables alone; the ranks determine that they share a host. Their address belongs
// to every host, unlike loopback.
TEST(Join, LocalRanksAreFoundOutWhereNobodyTellsThem) {
  const HeldPort port;
  const auto rank = [&](const char* number) {
    return std::make_unique<Launched>(std::vector<std::string>{built_program("world_worker")},
                                      Variables{{"RANK", number},
                                                {"WORLD_SIZE", "2"},
                                                {"MASTER_ADDR", "0.0.0.0"},
                                                {"MASTER_PORT", std::to_string(port.number())},
                                                {"LOCKSTEP_SECRET", "0123456789abcdef"}});
  };
  const auto first = rank("0");
  const auto second = rank("1");
  EXPECT_EQ(first->wait(), 0) << first->err();
  EXPECT_EQ(second->wait(), 0) << second->err();
  EXPECT_TRUE(has(first->out(), "rank 0/2 local 0/2 node 0/1 by torch")) << first->out();
  EXPECT_TRUE(has(second->out(), "rank 1/2 local 1/2 node 0/1 by torch")) << second->out();
}

TEST(Join, AFolderAloneIsEnoughToMeet) {
  const TempFolder folder;
  const auto rank = [&](const char* number) {
    return std::make_unique<Launched>(std::vector<std::string>{built_program("world_worker")},
                                      Variables{{"RANK", number},
                                                {"WORLD_SIZE", "2"},
                                                {"LOCKSTEP_RENDEZVOUS_DIR", folder.path().string()},
                                                {"LOCKSTEP_ADDRESS", "127.0.0.1"}});
  };
  const auto first = rank("0");
  const auto second = rank("1");
  EXPECT_EQ(first->wait(), 0) << first->err();
  EXPECT_EQ(second->wait(), 0) << second->err();
  EXPECT_TRUE(has(second->out(), "rank 1/2 local 1/2 node 0/1 by torch")) << second->out();
}

// A file name has no slashes: their replacement must not merge two jobs.
TEST(Join, JobsOfDifferentIdsMeetInOneFolder) {
  const TempFolder folder;
  const auto rank = [&](const char* number, const char* job) {
    return std::make_unique<Launched>(std::vector<std::string>{built_program("world_worker")},
                                      Variables{{"RANK", number},
                                                {"WORLD_SIZE", "2"},
                                                {"TORCHELASTIC_RUN_ID", job},
                                                {"LOCKSTEP_RENDEZVOUS_DIR", folder.path().string()},
                                                {"LOCKSTEP_ADDRESS", "127.0.0.1"}});
  };
  std::vector<std::unique_ptr<Launched>> ranks;
  for (const char* job : {"a/b", "a:b"}) ranks.push_back(rank("0", job));
  for (const char* job : {"a/b", "a:b"}) ranks.push_back(rank("1", job));
  for (const auto& each : ranks) EXPECT_EQ(each->wait(), 0) << each->err();
}

// Their ranks look alike. Two of rank 0 and two of rank 1 come; a superfluous one gets the name of
// the other.
TEST(Join, JobsWithoutAnIdInOneFolderNameEachOther) {
  const TempFolder folder;
  const auto rank = [&](const char* number) {
    return std::make_unique<Launched>(std::vector<std::string>{built_program("world_worker")},
                                      Variables{{"RANK", number},
                                                {"WORLD_SIZE", "3"},
                                                {"LOCKSTEP_RENDEZVOUS_DIR", folder.path().string()},
                                                {"LOCKSTEP_ADDRESS", "127.0.0.1"}});
  };
  const auto name_of = [](const Launched& other) {
    return fmt::format("process {} ", other.pid());
  };
  auto zero = rank("0");
  const auto until = Deadline::after(std::chrono::seconds(60));
  while (std::filesystem::is_empty(folder.path()) && !until.passed()) {
  }
  auto second_zero = rank("0");
  const auto ended = [](const Launched& which) { return has(which.err(), "error: "); };
  while (!ended(*zero) && !ended(*second_zero) && !until.passed()) {
  }
  if (ended(*zero)) std::swap(zero, second_zero);  // either may have taken the name first
  EXPECT_EQ(second_zero->wait(), 2) << second_zero->err();
  EXPECT_TRUE(has(second_zero->err(), "whose rank 0 is " + name_of(*zero))) << second_zero->err();

  auto one = rank("1");
  auto refused = rank("1");
  while (!ended(*one) && !ended(*refused) && !until.passed()) {
  }
  if (ended(*one)) std::swap(one, refused);  // either may have come first
  EXPECT_EQ(refused->wait(), 2) << refused->err();
  EXPECT_TRUE(has(refused->err(), "rank 1 has come already: " + name_of(*one))) << refused->err();
  EXPECT_TRUE(has(refused->err(), "a LOCKSTEP_RENDEZVOUS_DIR or MASTER_PORT of its own"));
  const auto two = rank("2");
  for (Launched* each : {zero.get(), one.get(), two.get()})
    EXPECT_EQ(each->wait(), 0) << each->err();
}

Variables of_two(const std::string& rank, int port) {
  return {{"RANK", rank},
          {"WORLD_SIZE", "2"},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

TEST(Join, WhoWaitsForRankZeroSaysSo) {
  const HeldPort port;
  const std::vector<std::string> program = {built_program("world_worker")};
  Launched early(program, of_two("1", port.number()));
  const auto said = fmt::format(
      "lockstep: rank 1 waits for rank 0 to serve the store at 127.0.0.1:{}", port.number());
  EXPECT_TRUE(early.wait_for(said)) << early.err();
  Launched late(program, of_two("0", port.number()));
  EXPECT_EQ(early.wait(), 0) << early.err();
  EXPECT_EQ(late.wait(), 0) << late.err();
}

TEST(Join, ARankThatIsThereTwiceAndAnotherNumberOfRanksAreNamed) {
  const HeldPort port;
  const std::vector<std::string> program = {built_program("world_worker")};
  Launched first(program, of_two("0", port.number()));
  tcp_connect({"127.0.0.1", port.number()}, Deadline::after(std::chrono::seconds(60)));
  Launched again(program, of_two("0", port.number()));
  EXPECT_NE(again.wait(), 0);
  EXPECT_TRUE(has(again.err(), "another process may have rank 0, too")) << again.err();
  auto variables = of_two("1", port.number());
  variables["WORLD_SIZE"] = "3";
  Launched wrong(program, variables);
  EXPECT_NE(wrong.wait(), 0);
  EXPECT_TRUE(has(wrong.err(), "or the number of ranks, which is 3 here")) << wrong.err();
  Launched second(program, of_two("1", port.number()));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
}

TEST(Join, APortThatAnotherProgramHasIsNamedWithItsHolder) {
  const UniqueFd taken = tcp_listen("127.0.0.1", 0);
  const int port = local_port(taken.get());
  const auto holder = fmt::format("port {} is already in use, by process {} (", port, ::getpid());
  Launched zero({built_program("world_worker")}, of_two("0", port));
  EXPECT_NE(zero.wait(), 0);
  EXPECT_TRUE(has(zero.err(), "environment variable MASTER_PORT: " + holder)) << zero.err();
  EXPECT_TRUE(has(zero.err(), "set another MASTER_PORT for all ranks")) << zero.err();
  Launched scheduled({built_program("world_worker")}, {{"MS_ROLE", "MS_WORKER"},
                                                       {"MS_WORKER_NUM", "2"},
                                                       {"MS_NODE_ID", "0"},
                                                       {"MS_SCHED_HOST", "127.0.0.1"},
                                                       {"MS_SCHED_PORT", std::to_string(port)}});
  EXPECT_NE(scheduled.wait(), 0);
  EXPECT_TRUE(has(scheduled.err(), "variable MS_SCHED_PORT: " + holder)) << scheduled.err();
  Launched given({built_program("world_worker"), "0", "2", std::to_string(port)});
  EXPECT_NE(given.wait(), 0);
  EXPECT_TRUE(has(given.err(), "World::join: master_port: " + holder)) << given.err();
  Launched lone({"run", "--master_port", std::to_string(port), "--", "/bin/true"});
  EXPECT_EQ(lone.wait(), 2) << lone.err();
  EXPECT_TRUE(has(lone.err(), "--master_port: " + holder)) << lone.err();
  Launched agent({"run", "--nnodes", "2", "--node_rank", "0", "--master_addr", "127.0.0.1",
                  "--master_port", std::to_string(port), "--", "/bin/true"});
  EXPECT_EQ(agent.wait(), 2) << agent.err();
  EXPECT_TRUE(has(agent.err(), "--master_port: " + holder)) << agent.err();
}

// As under mpirun: each rank's CPUs are its own, and must not be divided again.
TEST(Join, RanksThatAreBoundToCpusOfTheirOwnShareThemWithNobody) {
  const auto cpus = usable_cpus();
  const HeldPort port;
  std::vector<std::unique_ptr<Launched>> ranks;
  for (const int number : {0, 1}) {
    const auto cpu = std::to_string(cpus[static_cast<size_t>(number) % cpus.size()]);
    ranks.push_back(std::make_unique<Launched>(
        std::vector<std::string>{"/usr/bin/taskset", "-c", cpu, built_program("world_worker")},
        Variables{{"RANK", std::to_string(number)},
                  {"WORLD_SIZE", "2"},
                  {"MASTER_ADDR", "127.0.0.1"},
                  {"MASTER_PORT", std::to_string(port.number())}}));
  }
  for (const auto& rank : ranks) EXPECT_EQ(rank->wait(), 0) << rank->err();
  const std::string said = cpus.size() > 1
                               ? "2 ranks, 1 thread each (1 core, 1 rank on them;"
                               : "2 ranks, 1 thread each (1 core, 2 ranks on this host;";
  EXPECT_TRUE(has(ranks[0]->err(), said)) << ranks[0]->err();
}

Variables of_mindspore(const char* role, const std::string& node, int port) {
  return {{"MS_ROLE", role},
          {"MS_WORKER_NUM", "2"},
          {"MS_NODE_ID", node},
          {"MS_SCHED_HOST", "127.0.0.1"},
          {"MS_SCHED_PORT", std::to_string(port)}};
}

TEST(Join, MindSporesSchedulerStaysUntilTheRanksAreDone) {
  const HeldPort port;
  const auto process = [&](const char* role, const char* node) {
    return std::make_unique<Launched>(std::vector<std::string>{built_program("world_worker")},
                                      of_mindspore(role, node, port.number()));
  };
  const auto scheduler = process("MS_SCHED", "");
  const auto first = process("MS_WORKER", "0");
  EXPECT_TRUE(scheduler->wait_for("it stays until they are done")) << scheduler->err();
  EXPECT_FALSE(scheduler->alive().empty()) << "the ranks cannot be done without the second";
  const auto second = process("MS_WORKER", "1");
  EXPECT_EQ(first->wait(), 0) << first->err();
  EXPECT_EQ(second->wait(), 0) << second->err();
  EXPECT_EQ(scheduler->wait(), 0) << scheduler->err();
  EXPECT_EQ(scheduler->out(), "") << "it is no rank";
}

TEST(Join, RankZeroSaysForWhomItWaits) {
  const HeldPort port;
  const std::vector<std::string> program = {built_program("world_worker")};
  Launched early(program, of_mindspore("MS_WORKER", "0", port.number()));
  EXPECT_TRUE(early.wait_for("lockstep: waits for rank 1 to come\n")) << early.err();
  Launched late(program, of_mindspore("MS_WORKER", "1", port.number()));
  EXPECT_EQ(early.wait(), 0) << early.err();
  EXPECT_EQ(late.wait(), 0) << late.err();
}

TEST(Join, MindSporesSchedulerSaysForWhomItWaits) {
  const HeldPort port;
  const std::vector<std::string> program = {built_program("world_worker")};
  Launched scheduler(program, of_mindspore("MS_SCHED", "", port.number()));
  EXPECT_TRUE(scheduler.wait_for(fmt::format(
      "lockstep: MindSpore's scheduler waits for rank 0 to serve the store at 127.0.0.1:{}: ",
      port.number())))
      << scheduler.err();
  Launched first(program, of_mindspore("MS_WORKER", "0", port.number()));
  EXPECT_TRUE(scheduler.wait_for("it stays until they are done")) << "before all is over";
  Launched second(program, of_mindspore("MS_WORKER", "1", port.number()));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(scheduler.wait(), 0) << scheduler.err();
}

// The usual limit is longer than wait() waits.
TEST(Join, UnderMindSporesLaunchersTheirLimitCounts) {
  const auto process = [](const char* role, const HeldPort& port) {
    auto variables = of_mindspore(role, "0", port.number());
    variables["MS_TOPO_TIMEOUT"] = "3";
    return std::make_unique<Launched>(
        std::vector<std::string>{built_program("world_worker"), "as_allowed"}, variables);
  };
  const HeldPort first_port;
  const HeldPort second_port;
  const auto scheduler = process("MS_SCHED", first_port);
  const auto rank = process("MS_WORKER", second_port);
  EXPECT_GT(scheduler->wait(), 0);
  EXPECT_TRUE(has(scheduler->err(), "but rank 0 does not serve at")) << scheduler->err();
  EXPECT_GT(rank->wait(), 0);
  EXPECT_TRUE(has(rank->err(), "on rank 0: rank 1 of 2 did not come in time")) << rank->err();
}

TEST(Join, EnvShowsWhatArgumentsWouldDo) {
  Launched env({"env", "--rank", "1", "--world_size=2", "--master_addr", "127.0.0.1",
                "--master_port", "4000"});
  EXPECT_EQ(env.wait(), 0) << env.err();
  EXPECT_TRUE(has(env.out(), "arguments (the program gives its rank itself)")) << env.out();
  EXPECT_TRUE(has(env.out(), "127.0.0.1:4000")) << env.out();
  Launched wrong({"env", "--rank", "2", "--world_size", "2"});
  EXPECT_EQ(wrong.wait(), 2);
  Launched unknown({"env", "--wordl_size", "2"});
  EXPECT_EQ(unknown.wait(), 2);
  EXPECT_TRUE(has(unknown.err(), "did you mean '--world_size'?")) << unknown.err();
}

}  // namespace
}  // namespace lockstep::testing
