#include "lockstep/world/cores.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep/base/literals.h"
#include "lockstep/store/memory/memory_store.h"
#include "lockstep/world/cpu_topology.h"

namespace lockstep {
namespace {

World one_of_four() {
  World world;
  world.size = world.local_size = 4;
  world.store = make_memory_store();
  return world;
}

TEST(RanksOnMyCpus, AreAllUnlessALauncherHasBoundThem) {
  const World world = one_of_four();
  const auto all = usable_cpus();
  EXPECT_EQ(ranks_on_my_cpus(world, all), 4);
  EXPECT_EQ(ranks_on_my_cpus({}, all), 1);
  const std::vector<int> mine = {all.front()};
  EXPECT_EQ(ranks_on_my_cpus(world, mine), 4) << "nobody has told anything";
  for (const int rank : {0, 2, 3}) {
    world.store->set(fmt::format("cpus/0/{}", rank), "", Deadline::after(60s));
  }
  World other = world;
  other.local_rank = 1;
  publish_cpus(other, mine, Deadline::after(60s));
  // The only core of a host is no part of it, so a rank there shares it with all.
  const bool one_core = online_cpus() == 1;
  EXPECT_EQ(ranks_on_my_cpus(world, mine), one_core ? 4 : 1) << "one has told that it has them";
  publish_cpus(world, mine, Deadline::after(60s));
  EXPECT_EQ(ranks_on_my_cpus(world, mine), one_core ? 4 : 2);
}

TEST(RanksOnMyCpus, AreWhatTheAgentSays) {
  World world = one_of_four();
  world.store = nullptr;
  ::setenv(kCpuSharersVariable, "1", 1);
  EXPECT_EQ(ranks_on_my_cpus(world, usable_cpus()), 1);
  ::setenv(kCpuSharersVariable, "9", 1);
  EXPECT_EQ(ranks_on_my_cpus(world, usable_cpus()), 4) << "that was of another job";
  ::unsetenv(kCpuSharersVariable);
}

}  // namespace
}  // namespace lockstep
