// Many groups in one program: the rows and columns of a grid of ranks, working at the same time.

#include <gtest/gtest.h>

#include "lockstep/process_group.h"
#include "tests/comm/support/conformance.h"

namespace lockstep::testing {
namespace {

void check_grid_of(const World& world, int columns) {
  auto all = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
  check_grid(all, columns);
}

TEST(Grid, RowsAndColumnsOfTwoByTwo) {
  run_rank_threads(4, [](const World& world) { check_grid_of(world, 2); });
}
TEST(Grid, RowsAndColumnsOfTwoByFourOnTwoHosts) {
  run_rank_threads(HostLayout{4, 4}, [](const World& world) { check_grid_of(world, 4); });
}

}  // namespace
}  // namespace lockstep::testing
