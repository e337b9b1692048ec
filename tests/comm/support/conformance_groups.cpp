// The part of the suite for groups: creation, local ranks, end, and several at once.

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include "lockstep/error.h"
#include "tests/comm/support/conformance.h"

namespace lockstep::testing {
namespace {

std::vector<int> all_ranks(const ProcessGroup& group) {
  std::vector<int> ranks(static_cast<size_t>(group.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void require_refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kInvalidArgument, error.what());
    require(std::string_view(error.what()).find("destroyed") != std::string_view::npos,
            error.what());
    return;
  }
  throw std::runtime_error("a group that was destroyed still works");
}

/// Hosts are counted twice: by their first ranks, and as the sum of each rank's share of its host.
void check_places_in(ProcessGroup& group) {
  const int own[] = {group.local_rank(), group.local_size()};
  std::vector<int> all(2 * static_cast<size_t>(group.size()));
  group.all_gather(own, all.data(), 2, DType::kInt32).wait();
  int firsts = 0;
  double hosts = 0;
  for (size_t rank = 0; rank < all.size(); rank += 2) {
    require(all[rank] >= 0 && all[rank] < all[rank + 1], "local_rank");
    if (all[rank] == 0) ++firsts;
    hosts += 1.0 / all[rank + 1];
  }
  require(firsts > 0 && hosts > firsts - 0.01 && hosts < firsts + 0.01, "hosts of the group");
}

}  // namespace

void check_split(ProcessGroup& group) {
  const int last = group.size() - 1;
  const bool alone = group.rank() == last;
  auto part =
      group.split(alone ? ProcessGroup::kNoColor : group.rank() % 2, /*key=*/-group.rank() / 2);
  require(part.has_value() != alone, "split: who is in a group");
  if (!part) return;
  std::vector<int> members;
  for (int rank = last - 1; rank >= 0; --rank) {
    if (rank % 2 == group.rank() % 2) members.push_back(group.world_rank(rank));
  }
  require(part->size() == static_cast<int>(members.size()), "split: size");
  for (int rank = 0; rank < part->size(); ++rank) {
    require(part->world_rank(rank) == members[static_cast<size_t>(rank)], "split: order");
  }
  int sum = group.world_rank(group.rank());
  part->all_reduce(&sum, 1, DType::kInt32, ReduceOp::kSum).wait();
  require(sum == std::accumulate(members.begin(), members.end(), 0), "all_reduce after a split");
}

void check_grid(ProcessGroup& group, int columns) {
  const int rank = group.rank();
  const int row = rank / columns;
  const int column = rank % columns;
  auto in_row = group.split(row, column).value();
  auto in_column = group.split(column, row).value();
  require(in_row.rank() == column && in_column.rank() == row, "place in row and column");
  constexpr int64_t kCount = 30'000;
  constexpr int kTimes = 10;
  std::vector<std::vector<int32_t>> data;
  std::vector<Work> works;
  for (int i = 0; i < 2 * kTimes; ++i) data.emplace_back(kCount, rank + i);
  for (int i = 0; i < kTimes; ++i) {
    const auto start = [&](ProcessGroup& part, int index) {
      works.push_back(part.all_reduce(data[static_cast<size_t>(index)].data(), kCount,
                                      DType::kInt32, ReduceOp::kSum, {.async = true}));
    };
    // The order differs between ranks: it must agree only within a group.
    start(rank % 2 == 0 ? in_row : in_column, rank % 2 == 0 ? 2 * i : 2 * i + 1);
    start(rank % 2 == 0 ? in_column : in_row, rank % 2 == 0 ? 2 * i + 1 : 2 * i);
  }
  int one = 1;
  group.all_reduce(&one, 1, DType::kInt32, ReduceOp::kSum).wait();
  require(one == group.size(), "the whole group meanwhile");
  for (auto& work : works) work.wait();
  for (int i = 0; i < kTimes; ++i) {
    int row_sum = 0;
    int column_sum = 0;
    for (int other = 0; other < group.size(); ++other) {
      if (other / columns == row) row_sum += other + 2 * i;
      if (other % columns == column) column_sum += other + 2 * i + 1;
    }
    require(data[2 * static_cast<size_t>(i)].back() == row_sum, "sum over the row");
    require(data[2 * static_cast<size_t>(i) + 1].back() == column_sum, "sum over the column");
  }
}

void check_places(ProcessGroup& group) {
  check_places_in(group);
  std::vector<int> turned = all_ranks(group);
  std::reverse(turned.begin(), turned.end());
  auto other = group.subgroup(turned);
  check_places_in(other);
  require(other.local_size() == group.local_size(), "a host's ranks in another order");
  require(other.local_rank() == group.local_size() - 1 - group.local_rank(), "place in it");
}

void check_destroy(ProcessGroup& group) {
  auto part = group.subgroup(all_ranks(group));
  auto copy = part;
  const auto buffer = part.allocate(1000);
  float value = 1;
  Work work = part.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kSum, {.async = true});
  part.destroy();
  require(work.done(), "destroy() waits for what was started");
  work.wait();
  require(value == static_cast<float>(group.size()), "sum before destroy()");
  part.destroy();
  copy.destroy();
  require(copy.rank() == group.rank(), "rank() after destroy()");
  require_refused([&] { copy.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kSum).wait(); });
  require_refused([&] { copy.barrier(); });
  require_refused([&] { (void)copy.subgroup({group.rank()}); });
  require_refused([&] { (void)copy.split(0); });
  require_refused([&] { copy.allocate(1); });
  static_cast<char*>(buffer->data())[999] = 1;
  group.subgroup(all_ranks(group)).barrier();
  group.barrier();
}

}  // namespace lockstep::testing
