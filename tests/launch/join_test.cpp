// Programs that know their rank without an agent, end to end.

#include <gtest/gtest.h>

#include <memory>

#include "tests/launch/launched.h"
#include "tests/support/held_port.h"

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

TEST(Join, MindSporesSchedulerStaysUntilTheRanksAreDone) {
  const HeldPort port;
  const auto process = [&](const char* role, const char* node) {
    Variables variables = {{"MS_ROLE", role},
                           {"MS_WORKER_NUM", "2"},
                           {"MS_SCHED_HOST", "127.0.0.1"},
                           {"MS_SCHED_PORT", std::to_string(port.number())}};
    if (*node != '\0') variables["MS_NODE_ID"] = node;
    return std::make_unique<Launched>(std::vector<std::string>{built_program("world_worker")},
                                      variables);
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
