// The conformance suite with ranks on several hosts: TCP alone, and TCP between hosts whose ranks
// share memory. The suite's reference is the fixed tree, so the bits equal those of the one-host
// transport.

#include <gtest/gtest.h>

#include "tests/comm/support/conformance.h"

namespace lockstep::testing {
namespace {

const GroupOptions kPatient{.timeout = std::chrono::seconds(60)};

void check_small(ProcessGroup& group) {
  if (!kSanitized || group.size() <= 3) check_all_reduce(group);
  check_broadcast(group);
  check_all_gather(group);
  check_reduce_scatter(group);
  check_point_to_point(group);
  check_many_async(group);
  check_allocate(group);
  check_subgroups(group);
  check_reduce(group);
  check_exchanges(group);
  check_coalesced(group);
  check_split(group);
  check_not_numbers(group);
  check_places(group);
  check_destroy(group);
}

class SeveralHosts : public ::testing::TestWithParam<Layout> {};

TEST_P(SeveralHosts, EverythingBetweenThreads) {
  run_rank_threads(GetParam().hosts, [](const World& world) {
    auto group = ProcessGroup::create(world, kPatient);
    check_small(group);
  });
}

std::vector<Layout> several_hosts_layouts() {
  std::vector<Layout> layouts = {{"Tcp2", {1, 1}}, {"Hosts21", {2, 1}}, {"Hosts32", {3, 2}}};
  if (kSanitized) return layouts;
  layouts.push_back({"Tcp3", {1, 1, 1}});
  layouts.push_back({"Tcp4", {1, 1, 1, 1}});
  layouts.push_back({"Tcp5", {1, 1, 1, 1, 1}});
  layouts.push_back({"Hosts22", {2, 2}});
  layouts.push_back({"Hosts131", {1, 3, 1}});
  layouts.push_back({"Hosts43", {4, 3}});
  layouts.push_back({"Hosts44", {4, 4}});
  return layouts;
}

INSTANTIATE_TEST_SUITE_P(Layouts, SeveralHosts, ::testing::ValuesIn(several_hosts_layouts()),
                         [](const auto& layout) { return layout.param.name; });

class FewHosts : public ::testing::TestWithParam<Layout> {};

TEST_P(FewHosts, LargerThanARound) {
  run_rank_threads(GetParam().hosts, [](const World& world) {
    auto group = ProcessGroup::create(world, kPatient);
    if (kSanitized) return check_all_reduce_of_many_rounds(group);
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

/// A host with data in shared memory, a host that stages it and a host of one rank send the same
/// messages.
TEST(Hierarchical, AllReduceOfManyRounds) {
  if (kSanitized) return;  // FewHosts covers it
  for (const HostLayout& hosts : {HostLayout{1, 1, 1}, HostLayout{2, 2}, HostLayout{3, 1, 2}}) {
    run_rank_threads(hosts, [](const World& world) {
      auto group = ProcessGroup::create(world, kPatient);
      check_all_reduce_of_many_rounds(group);
    });
  }
}

/// Four hosts and eight run in pairs if the tree allows it.
TEST(Hierarchical, AllReduceOfFewBytes) {
  for (const HostLayout& hosts : {HostLayout{1, 1, 1, 1}, HostLayout{2, 2, 2, 2},
                                  HostLayout{1, 2, 1, 1}, HostLayout{1, 1, 1, 1, 1, 1, 1, 1}}) {
    if (kSanitized && hosts.size() > 4) continue;
    run_rank_threads(hosts, [](const World& world) {
      auto group = ProcessGroup::create(world, kPatient);
      group.barrier();
      check_all_reduce_of_few_bytes(group);
      group.barrier();
    });
  }
}

/// Ranks placed on hosts round robin: no two neighbours of the tree share a host.
TEST(Hierarchical, RanksThatAreNotConsecutive) {
  run_rank_threads(5, [](World world) {
    world.host_id = world.rank % 2 == 0 ? "even" : "odd";
    auto group = ProcessGroup::create(world, kPatient);
    check_all_reduce(group);
    check_broadcast(group);
    check_all_gather(group);
    check_reduce_scatter(group);
    check_point_to_point(group);
    check_reduce(group);
    check_exchanges(group);
  });
}

}  // namespace
}  // namespace lockstep::testing
