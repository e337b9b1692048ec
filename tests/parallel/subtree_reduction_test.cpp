// Sums over any number of ranks have the bits of the tree over the virtual ranks. Ranks are
// threads.
#include "lockstep/parallel/subtree_reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using testing::HostLayout;
using testing::run_rank_threads;

/// The value of virtual rank `leaf` at `i` in sum `sum`: its rounding depends on the order.
template <class T>
T value_at(int leaf, int64_t i, int sum) {
  return static_cast<T>(std::sin(static_cast<double>(i * 37 + leaf * 101 + sum * 7)) *
                        std::pow(10, (leaf * 5 + i) % 9));
}

template <class T>
std::vector<T> whole_sum(int lo, int hi, int64_t count, int sum) {
  std::vector<T> values(static_cast<size_t>(count));
  if (hi - lo == 1) {
    for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = value_at<T>(lo, i, sum);
    return values;
  }
  const int mid = tree_mid(lo, hi);
  values = whole_sum<T>(lo, mid, count, sum);
  const auto right = whole_sum<T>(mid, hi, count, sum);
  for (size_t i = 0; i < values.size(); ++i) values[i] += right[i];
  return values;
}

/// Starts one sum for each of `counts`, then waits for all. The last subtree's value is the output.
template <class T>
void expect_tree_sums(ProcessGroup& group, int virtual_ranks, const std::vector<int64_t>& counts,
                      DType dtype) {
  const auto range = deal_virtual_ranks(virtual_ranks, group.rank(), group.size());
  const auto nodes = owned_subtrees(range);
  SubtreeReduction reduction(group, range, std::numeric_limits<int64_t>::max());
  std::vector<std::vector<T>> outs;
  std::vector<std::function<void()>> finishes;
  for (int sum = 0; sum < std::ssize(counts); ++sum) {
    std::vector<std::vector<T>> values;
    for (const RankRange& node : nodes) {
      values.push_back(whole_sum<T>(node.lo, node.hi, counts[static_cast<size_t>(sum)], sum));
    }
    outs.push_back(std::move(values.back()));
    std::vector<const void*> places;
    for (size_t i = 0; i + 1 < values.size(); ++i) places.push_back(values[i].data());
    places.push_back(outs.back().data());
    finishes.push_back(
        reduction.start(places, outs.back().data(), counts[static_cast<size_t>(sum)], dtype));
  }
  for (size_t sum = 0; sum < finishes.size(); ++sum) {
    finishes[sum]();
    EXPECT_EQ(outs[sum], whole_sum<T>(0, virtual_ranks, counts[sum], static_cast<int>(sum)))
        << "sum " << sum << " of " << virtual_ranks << " on " << group.size();
  }
}

TEST(SubtreeReduction, HasTheBitsOfTheTreeForEveryDealing) {
  for (const int size : {2, 3, 5, 8}) {
    run_rank_threads(size, [](World world) {
      auto group = ProcessGroup::create(world);
      for (int virtual_ranks = group.size(); virtual_ranks <= 17; ++virtual_ranks) {
        expect_tree_sums<float>(group, virtual_ranks, {1, 0, 501, 17}, DType::kFloat32);
      }
    });
  }
}

// Several chunks per sum, the last one short.
TEST(SubtreeReduction, ManyChunksOnOneHostAndBetweenHosts) {
  constexpr int64_t kChunk = SubtreeReduction::kChunkBytes / 8;
  for (const HostLayout& hosts : {HostLayout{3}, {1, 2}, {1, 1, 1}, {3, 2}}) {
    run_rank_threads(hosts, [](World world) {
      auto group = ProcessGroup::create(world);
      expect_tree_sums<double>(group, 7, {2 * kChunk + 3, 5, kChunk}, DType::kFloat64);
    });
  }
}

TEST(SubtreeReduction, AfterWhatWasAbandonedTheGroupGoesOn) {
  run_rank_threads(3, [](World world) {
    auto group = ProcessGroup::create(world);
    const auto range = deal_virtual_ranks(4, group.rank(), group.size());
    SubtreeReduction reduction(group, range, 1 << 20);
    std::vector<float> value(1000, 1), out(1000);
    const std::vector<const void*> values(owned_subtrees(range).size(), value.data());
    const auto finish = reduction.start(values, out.data(), 1000, DType::kFloat32);
    reduction.abandon();
    finish();
    const auto again = reduction.start(values, out.data(), 1000, DType::kFloat32);
    again();
    EXPECT_EQ(out,
              std::vector<float>(1000, static_cast<float>(all_subtrees(4, group.size()).size())));
    expect_tree_sums<float>(group, 4, {100}, DType::kFloat32);
  });
}

TEST(SumOverVirtualRanks, HasTheTreesOrderOnAnyRanks) {
  for (const int size : {1, 2, 3, 5}) {
    run_rank_threads(size, [](World world) {
      auto group = ProcessGroup::create(world);
      const auto range = deal_virtual_ranks(6, group.rank(), group.size());
      std::vector<std::vector<double>> rows(2);
      for (int leaf = range.first; leaf < range.first + range.count; ++leaf) {
        for (int row = 0; row < 2; ++row) {
          rows[static_cast<size_t>(row)].push_back(value_at<double>(leaf, row, 0));
        }
      }
      const auto sums = sum_over_virtual_ranks(group, range, rows);
      EXPECT_EQ(sums, whole_sum<double>(0, 6, 2, 0)) << world.size;
    });
  }
}

}  // namespace
}  // namespace lockstep
