// Many groups in one program: the rows and columns of a grid of ranks, at work at the same time.

#include <gtest/gtest.h>

#include <vector>

#include "lockstep/comm/process_group.h"
#include "tests/comm/support/conformance.h"

namespace lockstep::testing {
namespace {

/// Every rank sums over its row and its column, many times, all under way together; the groups
/// overlap in one rank each.
void check_grid(const World& world, int columns) {
  auto all = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
  const int row = world.rank / columns;
  const int column = world.rank % columns;
  auto in_row = all.split(row, column).value();
  auto in_column = all.split(column, row).value();
  require(in_row.size() == columns && in_row.rank() == column, "row");
  require(in_column.size() == world.size / columns && in_column.rank() == row, "column");
  constexpr int64_t kCount = 30'000;
  constexpr int kTimes = 10;
  std::vector<std::vector<int32_t>> data;
  std::vector<Work> works;
  for (int i = 0; i < 2 * kTimes; ++i) data.emplace_back(kCount, world.rank + i);
  for (int i = 0; i < kTimes; ++i) {
    const auto start = [&](ProcessGroup& group, int index) {
      works.push_back(group.all_reduce(data[static_cast<size_t>(index)].data(), kCount,
                                       DType::kInt32, ReduceOp::kSum, {.async = true}));
    };
    // Not in the same order everywhere: only within a group must it agree.
    start(world.rank % 2 == 0 ? in_row : in_column, world.rank % 2 == 0 ? 2 * i : 2 * i + 1);
    start(world.rank % 2 == 0 ? in_column : in_row, world.rank % 2 == 0 ? 2 * i + 1 : 2 * i);
  }
  int one = 1;
  all.all_reduce(&one, 1, DType::kInt32, ReduceOp::kSum).wait();
  require(one == world.size, "the whole group meanwhile");
  for (auto& work : works) work.wait();
  for (int i = 0; i < kTimes; ++i) {
    int row_sum = 0;
    int column_sum = 0;
    for (int rank = 0; rank < world.size; ++rank) {
      if (rank / columns == row) row_sum += rank + 2 * i;
      if (rank % columns == column) column_sum += rank + 2 * i + 1;
    }
    require(data[2 * static_cast<size_t>(i)].back() == row_sum, "sum over the row");
    require(data[2 * static_cast<size_t>(i) + 1].back() == column_sum, "sum over the column");
  }
}

TEST(Grid, RowsAndColumnsOfTwoByTwo) {
  run_rank_threads(4, [](const World& world) { check_grid(world, 2); });
}
TEST(Grid, RowsAndColumnsOfTwoByFourOnTwoHosts) {
  run_rank_threads(HostLayout{4, 4}, [](const World& world) { check_grid(world, 4); });
}

}  // namespace
}  // namespace lockstep::testing
