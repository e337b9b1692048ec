// More ranks and hosts than the usual limit of descriptors allows.

#include <gtest/gtest.h>

#include "tests/launch/launched.h"
#include "tests/support/held_port.h"

namespace lockstep::testing {
namespace {

/// `words` of lockstep under a limit, as a shell sets it.
std::vector<std::string> limited(const std::string& limit, const std::vector<std::string>& words) {
  std::vector<std::string> all = {"/bin/sh", "-c", "ulimit " + limit + "; exec \"$0\" \"$@\"",
                                  built_program("lockstep")};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

TEST(Limits, ManyRanksNeedNoHigherSoftLimit) {
  Launched run(limited("-Sn 128", shell(60, "echo may open $(ulimit -Sn).", {"--no_fold"})));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(times_in(run.out(), "may open 128."), 60) << "programs get the user's limit";
}

TEST(Limits, ManyHostsNeedNoHigherSoftLimit) {
  Launched run(limited("-Sn 128", {"run", "-H", "n[1-60]:1", "--rsh", "false", "--", "true"}));
  EXPECT_NE(run.wait(), 0);
  EXPECT_TRUE(has(run.err(), "no agent could be started there")) << run.err();
}

TEST(Limits, AHardLimitThatIsTooLowIsSaidAtOnce) {
  Launched ranks(limited("-n 256", shell(100, "true")));
  EXPECT_EQ(ranks.wait(), 2);
  EXPECT_TRUE(has(ranks.err(), "100 ranks need 560 open files, and this process may have 256"))
      << ranks.err();
  Launched hosts(limited("-n 256", {"run", "-H", "n[1-100]:1", "--rsh", "false", "--", "true"}));
  EXPECT_EQ(hosts.wait(), 2);
  EXPECT_TRUE(has(hosts.err(), "100 hosts need 460 open files")) << hosts.err();
}

TEST(Limits, AStoreThatCannotTakeAllRanksIsTheJobsFailure) {
  const HeldPort port;
  const auto node = [&](int rank, int ranks) {
    return std::vector<std::string>{"run",
                                    "--nnodes",
                                    "2",
                                    "--node_rank",
                                    std::to_string(rank),
                                    "--nproc_per_node",
                                    std::to_string(ranks),
                                    "--master_addr",
                                    "127.0.0.1",
                                    "--master_port",
                                    std::to_string(port.number()),
                                    "--",
                                    built_program("world_worker")};
  };
  Launched first(limited("-n 176", node(0, 1)), {{"LOCKSTEP_HOST_ID", "a"}});
  Launched second(node(1, 140), {{"LOCKSTEP_HOST_ID", "b"}});
  EXPECT_NE(first.wait(), 0);
  EXPECT_NE(second.wait(), 0);
  for (const Launched* each : {&first, &second}) {
    EXPECT_TRUE(has(each->err(), "this process may open 176 files")) << each->err();
  }
}

}  // namespace
}  // namespace lockstep::testing
