#include "lockstep/world/identity.h"
#include "lockstep/world/host_id.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/error.h"
#include "lockstep/world.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/detect/decision.h"
#include "lockstep/world/join/this_process.h"
#include "lockstep/world/torch_store.h"

namespace lockstep {
namespace {

Environment with(Environment base, const Environment& changes) {
  for (const auto& [name, value] : changes) base[name] = value;
  return base;
}

Environment agent_environment() {
  return {{"LOCKSTEP_STORE", "127.0.0.1:4000"}, {"LOCKSTEP_RANK", "3"},
          {"LOCKSTEP_WORLD_SIZE", "5"},         {"LOCKSTEP_LOCAL_RANK", "0"},
          {"LOCKSTEP_LOCAL_WORLD_SIZE", "2"},   {"LOCKSTEP_NODE_RANK", "1"},
          {"LOCKSTEP_NUM_NODES", "2"},          {"LOCKSTEP_RESTART_COUNT", "1"},
          {"LOCKSTEP_RUN_ID", "night"},         {"LOCKSTEP_SECRET", "s"}};
}

Environment torch_environment() {
  return {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
}

std::string failure(const Environment& environment) {
  try {
    decide_identity(environment);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Identity, AloneWithoutALauncher) {
  for (const Environment& environment :
       {Environment{}, Environment{{"MASTER_ADDR", "far"}, {"MASTER_PORT", "1"}},
        Environment{{"RANK", ""}, {"WORLD_SIZE", ""}},
        with(agent_environment(), {{"LOCKSTEP_LAUNCHER", "none"}})}) {
    const Identity id = decide_identity(environment);
    EXPECT_EQ(id.launcher, "none");
    EXPECT_EQ(id.rank, 0);
    EXPECT_EQ(id.size, 1);
    EXPECT_EQ(id.local_size, 1);
  }
}

Decision by_arguments(const RankArguments& arguments, const Environment& environment = {}) {
  return decide(arguments, inputs_from(environment));
}

TEST(Arguments, AreTheFirstOfAllSources) {
  const auto decision =
      by_arguments({.rank = 1, .world_size = 2, .master_addr = "127.0.0.1", .master_port = 4000},
                   agent_environment());
  EXPECT_EQ(decision.problem, "");
  const Identity& id = decision.identity;
  EXPECT_EQ(id.launcher, "arguments");
  EXPECT_EQ(id.rank, 1);
  EXPECT_EQ(id.size, 2);
  EXPECT_EQ(id.local_rank, kUnknownNumber);
  EXPECT_EQ(to_string(id.master), "127.0.0.1:4000");
  EXPECT_EQ(id.bootstrap, BootstrapMethod::kRankZero);
  EXPECT_EQ(decision.results.at(0).passed_over, "not asked: the program gives its rank itself");
}

TEST(Arguments, WhereTheyMeetCanBeLeftToTheEnvironment) {
  const auto decision = by_arguments({.rank = 0, .world_size = 2}, torch_environment());
  EXPECT_EQ(to_string(decision.identity.master), "127.0.0.1:29500");
  EXPECT_NE(by_arguments({.rank = 0, .world_size = 2}).problem, "") << "nobody says where";
  EXPECT_EQ(by_arguments({}).identity.bootstrap, BootstrapMethod::kAlone);
}

TEST(Arguments, AreChecked) {
  ::setenv("LOCKSTEP_MUNGE_SOCKET", "/nowhere", 1);  // whatever this machine has
  const auto problem = [](const RankArguments& arguments) {
    return by_arguments(arguments).problem;
  };
  EXPECT_NE(problem({.rank = 2, .world_size = 2}).find("rank=2 must be below world_size=2"),
            std::string::npos);
  EXPECT_NE(problem({.rank = -1, .world_size = 2}).find("rank is -1"), std::string::npos);
  EXPECT_NE(problem({.world_size = 0}).find("world_size is 0"), std::string::npos);
  EXPECT_NE(problem({.world_size = 2, .master_addr = "a", .master_port = 70000}).find("70000"),
            std::string::npos);
  EXPECT_NE(problem({.world_size = 2, .local_rank = 1, .local_world_size = 1}).find("local_rank=1"),
            std::string::npos);
  EXPECT_NE(problem({.world_size = 2, .master_addr = "10.0.0.1"}).find("LOCKSTEP_SECRET"),
            std::string::npos);
}

TEST(Identity, OurAgentSaysEverything) {
  const Identity id = decide_identity(agent_environment());
  EXPECT_EQ(id.launcher, "lockstep");
  EXPECT_EQ(id.rank, 3);
  EXPECT_EQ(id.size, 5);
  EXPECT_EQ(id.local_rank, 0);
  EXPECT_EQ(id.local_size, 2);
  EXPECT_EQ(id.node_rank, 1);
  EXPECT_EQ(id.num_nodes, 2);
  EXPECT_EQ(id.restart_count, 1);
  EXPECT_EQ(id.job_id, "night");
  EXPECT_EQ(id.secret, "s");
  EXPECT_EQ(id.master.port, 4000);
}

TEST(Identity, TlsIsForWhatLeavesTheHost) {
  const Environment tls = {{"LOCKSTEP_TLS", "1"}};
  EXPECT_EQ(decide_identity(agent_environment()).wire, Wire::kPlain);
  EXPECT_EQ(decide_identity(with(agent_environment(), tls)).wire, Wire::kTls);
  EXPECT_EQ(decide_identity(with(torch_environment(), tls)).wire, Wire::kPlain);  // on loopback
  const Environment far = {{"MASTER_ADDR", "10.0.0.1"}, {"LOCKSTEP_SECRET", "s"}};
  EXPECT_EQ(decide_identity(with(with(torch_environment(), far), tls)).wire, Wire::kTls);
}

TEST(Identity, EachVariableOfOurAgentIsNeeded) {
  for (const auto& [name, value] : agent_environment()) {
    if (name == "LOCKSTEP_SECRET") continue;
    EXPECT_NE(failure(with(agent_environment(), {{name, ""}})).find(name), std::string::npos);
  }
}

struct TorchCase {
  const char* about;
  Environment changes;
  int rank, size, local_rank, local_size, node_rank, num_nodes;
};

TEST(Identity, TorchEnvironment) {
  const Environment far = {{"MASTER_ADDR", "10.0.0.1"}, {"LOCKSTEP_SECRET", "s"}};
  const TorchCase cases[] = {
      {"a shell loop on one host", {}, 1, 2, 1, 2, 0, 1},
      {"localhost is this host", {{"MASTER_ADDR", "localhost"}}, 1, 2, 1, 2, 0, 1},
      {"nobody says which ranks share a host", far, 1, 2, kUnknownNumber, kUnknownNumber,
       kUnknownNumber, kUnknownNumber},
      {"a rank a host", with(far, {{"LOCAL_WORLD_SIZE", "1"}}), 1, 2, 0, 1, 1, 2},
      {"two hosts played on loopback", {{"LOCAL_WORLD_SIZE", "1"}}, 1, 2, 0, 1, 1, 2},
      {"local rank given", with(far, {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}), 1, 2, 1, 2,
       0, 1},
      {"nodes by division",
       with(far,
            {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}}),
       5, 8, 1, 4, 1, 2},
      {"uneven nodes",
       with(far, {{"RANK", "2"},
                  {"WORLD_SIZE", "3"},
                  {"LOCAL_RANK", "0"},
                  {"LOCAL_WORLD_SIZE", "1"},
                  {"GROUP_RANK", "1"},
                  {"GROUP_WORLD_SIZE", "2"}}),
       2, 3, 0, 1, 1, 2},
      {"world of one needs no master",
       {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", ""}},
       0,
       1,
       0,
       1,
       0,
       1},
  };
  for (const TorchCase& c : cases) {
    SCOPED_TRACE(c.about);
    const Identity id = decide_identity(with(torch_environment(), c.changes));
    EXPECT_EQ(id.launcher, "torch");
    EXPECT_EQ(id.rank, c.rank);
    EXPECT_EQ(id.size, c.size);
    EXPECT_EQ(id.local_rank, c.local_rank);
    EXPECT_EQ(id.local_size, c.local_size);
    EXPECT_EQ(id.node_rank, c.node_rank);
    EXPECT_EQ(id.num_nodes, c.num_nodes);
  }
}

struct BadCase {
  const char* about;
  Environment environment;
  const char* said;  ///< Must occur in the error.
};

TEST(Identity, RefusesWhatItWouldHaveToGuess) {
  const auto torch = [](const Environment& changes) { return with(torch_environment(), changes); };
  const auto agent = [](const Environment& changes) { return with(agent_environment(), changes); };
  const BadCase cases[] = {
      {"no size", torch({{"WORLD_SIZE", ""}}), "WORLD_SIZE is not set"},
      {"no rank", torch({{"RANK", ""}}), "RANK is not set"},
      {"misspelt size", torch({{"WORLD_SIZE", ""}, {"WORLDSIZE", "2"}}), "mean 'WORLDSIZE'?"},
      {"only a local rank", {{"LOCAL_RANK", "0"}}, "WORLD_SIZE is not set"},
      {"no master", torch({{"MASTER_ADDR", ""}}), "MASTER_ADDR is not set"},
      {"no port", torch({{"MASTER_PORT", ""}}), "MASTER_PORT is not set"},
      {"port out of range", torch({{"MASTER_PORT", "70000"}}), "MASTER_PORT: '70000'"},
      {"not a number", torch({{"RANK", "one"}}), "RANK: 'one'"},
      {"negative", torch({{"RANK", "-1"}}), "RANK: '-1'"},
      {"rank too high", torch({{"RANK", "2"}}), "RANK=2 must be below WORLD_SIZE=2"},
      {"local rank too high", torch({{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}),
       "LOCAL_RANK=2 must be below"},
      {"more local ranks than ranks", torch({{"LOCAL_WORLD_SIZE", "3"}}),
       "LOCAL_WORLD_SIZE=3 is more than WORLD_SIZE=2"},
      {"one node, other local rank", torch({{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}}),
       "GROUP_WORLD_SIZE is not set"},
      {"one node, other size",
       torch({{"GROUP_WORLD_SIZE", "1"},
              {"LOCAL_WORLD_SIZE", "1"},
              {"GROUP_RANK", "0"},
              {"LOCAL_RANK", "0"}}),
       "GROUP_WORLD_SIZE is 1"},
      {"no secret", torch({{"MASTER_ADDR", "10.0.0.1"}}), "set LOCKSTEP_SECRET"},
      {"disagreement", with(agent_environment(), torch_environment()), "two launchers"},
      {"unknown launcher", {{"LOCKSTEP_LAUNCHER", "touch"}}, "did you mean 'torch'?"},
      {"agent's rank", agent({{"LOCKSTEP_RANK", "5"}}), "LOCKSTEP_RANK=5 must be below"},
      {"agent's node", agent({{"LOCKSTEP_NODE_RANK", "2"}}), "LOCKSTEP_NODE_RANK=2 must be"},
      {"agent's store without a port", agent({{"LOCKSTEP_STORE", "host"}}), "HOST:PORT"},
  };
  ::setenv("LOCKSTEP_MUNGE_SOCKET", "/nowhere", 1);  // whatever this machine has
  for (const BadCase& c : cases) {
    SCOPED_TRACE(c.about);
    EXPECT_NE(failure(c.environment).find(c.said), std::string::npos) << failure(c.environment);
  }
}

TEST(Identity, LauncherVariableEndsADisagreement) {
  const auto both = with(agent_environment(), torch_environment());
  EXPECT_EQ(decide_identity(with(both, {{"LOCKSTEP_LAUNCHER", "torch"}})).rank, 1);
  EXPECT_EQ(decide_identity(with(both, {{"LOCKSTEP_LAUNCHER", "lockstep"}})).rank, 3);
}

TEST(Identity, ThreadsAreCoresPerLocalRank) {
  EXPECT_EQ(threads_per_rank({}, 8, 2), 4);
  EXPECT_EQ(threads_per_rank({}, 2, 3), 1);
  EXPECT_EQ(threads_per_rank({{"OMP_NUM_THREADS", "5"}}, 8, 2), 5);
  EXPECT_EQ(threads_per_rank({{"OMP_NUM_THREADS", "4,2"}}, 8, 2), 4);
  EXPECT_THROW(threads_per_rank({{"OMP_NUM_THREADS", "0"}}, 8, 2), Error);
}

TEST(Identity, CoresAreCpusAndNoMoreThanTheQuota) {
  EXPECT_EQ(cores_within(64, 0), 64) << "no limit";
  EXPECT_EQ(cores_within(64, 4), 4);
  EXPECT_EQ(cores_within(64, 2.5), 2);
  EXPECT_EQ(cores_within(64, 0.5), 1);
  EXPECT_EQ(cores_within(2, 8), 2);
  EXPECT_GE(usable_cores(), 1);
}

// Where each rank has one core, or less, a quota changes nothing.
TEST(Identity, ThreadsOfARankAreTheSameWithoutALookAtTheQuota) {
  for (const int ranks : {1, 2, 3, 1000}) {
    EXPECT_EQ(threads_per_rank({}, cores_for(ranks), ranks),
              threads_per_rank({}, usable_cores(), ranks))
        << ranks;
  }
}

TEST(Identity, ARankHasItsShareOfItsOwnCpus) {
  EXPECT_EQ(cores_of_rank(16, 4, 0, 4), 4) << "all on all";
  EXPECT_EQ(cores_of_rank(4, 1, 0, 4), 4) << "each bound to its own";
  EXPECT_EQ(cores_of_rank(8, 2, 0, 4), 4) << "two on each socket";
  EXPECT_EQ(cores_of_rank(64, 4, 8, 4), 2) << "a container's limit is for all";
  EXPECT_EQ(cores_of_rank(1, 1, 0.5, 2), 1);
}

TEST(StorePorts, MasterPortUnlessTorchrunHasIt) {
  Identity id = decide_identity(torch_environment());
  EXPECT_EQ(store_ports(id), std::vector<int>{29500});
  id.master_taken = true;
  const auto ports = store_ports(id);
  EXPECT_EQ(ports.size(), 8U);
  for (const int port : ports) {
    EXPECT_GE(port, 20000);
    EXPECT_LT(port, 30100);
  }
  EXPECT_EQ(store_ports(id), ports);
  id.restart_count = 1;
  EXPECT_NE(store_ports(id), ports);
}

TEST(StorePorts, ProofDependsOnTheJob) {
  Identity a = decide_identity(torch_environment());
  Identity b = a;
  EXPECT_EQ(store_secret(a), store_secret(b));
  b.job_id = "other";
  EXPECT_NE(store_secret(a), store_secret(b));
  b = a;
  b.secret = "s";
  EXPECT_NE(store_secret(a), store_secret(b));
}

TEST(HostId, IsStableAndCanBeSet) {
  EXPECT_EQ(this_host_id(), this_host_id());
  EXPECT_NE(this_host_id().find("net:["), std::string::npos);
  ::setenv("LOCKSTEP_HOST_ID", "a", 1);
  EXPECT_EQ(this_host_id(), "a");
  ::unsetenv("LOCKSTEP_HOST_ID");
}

}  // namespace
}  // namespace lockstep
