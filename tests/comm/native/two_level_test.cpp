// The conformance suite with ranks on several hosts: TCP alone, and TCP between hosts whose ranks
// share memory. The suite's reference is the one tree, so equal bits with the one-host transport
// follow.

#include <gtest/gtest.h>

#include "tests/comm/support/conformance.h"

namespace lockstep::testing {
namespace {

const GroupOptions kPatient{.timeout = std::chrono::seconds(60)};

void check_small(ProcessGroup& group) {
  check_all_reduce(group);
  check_broadcast(group);
  check_all_gather(group);
  check_reduce_scatter(group);
  check_point_to_point(group);
  check_many_async(group);
  check_allocate(group);
  check_subgroups(group);
}

class SeveralHosts : public ::testing::TestWithParam<Layout> {};

TEST_P(SeveralHosts, EverythingBetweenThreads) {
  run_rank_threads(GetParam().hosts, [](const World& world) {
    auto group = ProcessGroup::create(world, kPatient);
    check_small(group);
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, SeveralHosts,
                         ::testing::Values(Layout{"Tcp2", {1, 1}}, Layout{"Tcp3", {1, 1, 1}},
                                           Layout{"Tcp5", {1, 1, 1, 1, 1}},
                                           Layout{"Hosts21", {2, 1}}, Layout{"Hosts22", {2, 2}},
                                           Layout{"Hosts32", {3, 2}}, Layout{"Hosts131", {1, 3, 1}},
                                           Layout{"Hosts44", {4, 4}}),
                         [](const auto& layout) { return layout.param.name; });

class FewHosts : public ::testing::TestWithParam<Layout> {};

TEST_P(FewHosts, LargerThanARound) {
  run_rank_threads(GetParam().hosts, [](const World& world) {
    auto group = ProcessGroup::create(world, kPatient);
    check_large_all_reduce(group);
  });
}

TEST_P(FewHosts, EverythingBetweenProcesses) {
  const auto ends = run_rank_processes(GetParam().hosts, [](const World& world) {
    auto group = ProcessGroup::create(world, kPatient);
    check_small(group);
  });
  for (const int end : ends) EXPECT_EQ(end, 0);
}

INSTANTIATE_TEST_SUITE_P(Layouts, FewHosts,
                         ::testing::Values(Layout{"Tcp2", {1, 1}}, Layout{"Hosts21", {2, 1}}),
                         [](const auto& layout) { return layout.param.name; });

/// Ranks dealt out to hosts round robin: no two neighbours of the tree are on one host.
TEST(TwoLevel, RanksThatAreNotConsecutive) {
  run_rank_threads(5, [](World world) {
    world.host_id = world.rank % 2 == 0 ? "even" : "odd";
    auto group = ProcessGroup::create(world, kPatient);
    check_all_reduce(group);
    check_broadcast(group);
    check_all_gather(group);
    check_reduce_scatter(group);
    check_point_to_point(group);
  });
}

}  // namespace
}  // namespace lockstep::testing
