// The conformance suite over every layout of hosts, with ranks as threads and as processes.

#include <gtest/gtest.h>

#include "tests/comm/support/conformance.h"

namespace lockstep::testing {
namespace {

class Collectives : public ::testing::TestWithParam<Layout> {
 protected:
  void on_threads(void (*body)(ProcessGroup&)) {
    run_rank_threads(GetParam().hosts, [body](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
      body(group);
    });
  }
};

TEST_P(Collectives, AllReduceGivesTheBitsOfTheTree) {
  on_threads(check_all_reduce);
}
TEST_P(Collectives, LargeAllReduceGivesTheBitsOfTheTree) {
  on_threads(check_large_all_reduce);
}
TEST_P(Collectives, NotANumberWins) {
  on_threads(check_not_numbers);
}
TEST_P(Collectives, Broadcast) {
  on_threads(check_broadcast);
}
TEST_P(Collectives, AllGather) {
  on_threads(check_all_gather);
}
TEST_P(Collectives, ReduceScatter) {
  on_threads(check_reduce_scatter);
}
TEST_P(Collectives, PointToPoint) {
  on_threads(check_point_to_point);
}
TEST_P(Collectives, ManyAsync) {
  on_threads(check_many_async);
}
TEST_P(Collectives, Allocate) {
  on_threads(check_allocate);
}
TEST_P(Collectives, Subgroups) {
  on_threads(check_subgroups);
}

TEST_P(Collectives, Reduce) {
  on_threads(check_reduce);
}
TEST_P(Collectives, Exchanges) {
  on_threads(check_exchanges);
}
TEST_P(Collectives, Coalesced) {
  on_threads(check_coalesced);
}
TEST_P(Collectives, Split) {
  on_threads(check_split);
}
TEST_P(Collectives, Places) {
  on_threads(check_places);
}
TEST_P(Collectives, Destroy) {
  on_threads(check_destroy);
}

TEST_P(Collectives, EverythingBetweenProcesses) {
  const auto ends = run_rank_processes(GetParam().hosts, [](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
    check_everything(group);
  });
  for (const int end : ends) EXPECT_EQ(end, 0);
}

INSTANTIATE_TEST_SUITE_P(OneHost, Collectives, ::testing::ValuesIn(one_host_layouts()),
                         [](const auto& layout) { return layout.param.name; });

}  // namespace
}  // namespace lockstep::testing
