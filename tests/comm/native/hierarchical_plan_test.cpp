#include "lockstep/comm/native/hierarchical_plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/comm/native/hierarchical_step.h"

namespace lockstep {
namespace {

/// Hosts of the given sizes; `host_of` instead for hosts whose ranks are not consecutive.
Topology layout(const std::vector<int>& hosts) {
  std::vector<std::string> ids;
  for (size_t host = 0; host < hosts.size(); ++host)
    ids.insert(ids.end(), static_cast<size_t>(hosts[host]), std::to_string(host));
  return make_topology(ids);
}
Topology dealt(const std::string& host_of) {
  std::vector<std::string> ids;
  for (const char host : host_of) ids.emplace_back(1, host);
  return make_topology(ids);
}

TEST(HierarchicalPlan, EqualPowersOfTwoGiveOneNodeAHost) {
  const auto plan = make_hierarchical_plan(layout({4, 4, 4, 4}), 5);
  EXPECT_EQ(plan.slices, 4);
  EXPECT_EQ(plan.host, 1);
  EXPECT_EQ(plan.local, 1);
  EXPECT_EQ(plan.nodes[2], (std::vector<RankRange>{{8, 12}}));
  EXPECT_EQ(plan.carrier(3, 2), 14);
}

TEST(HierarchicalPlan, UnequalHostsGiveTheLargestNodes) {
  const auto plan = make_hierarchical_plan(layout({3, 2}), 4);
  EXPECT_EQ(plan.slices, 2);
  EXPECT_EQ(plan.nodes[0], (std::vector<RankRange>{{0, 2}, {2, 3}}));
  EXPECT_EQ(plan.nodes[1], (std::vector<RankRange>{{3, 4}, {4, 5}}));
}

TEST(HierarchicalPlan, RoundRobinRanksAreAllLeaves) {
  const auto plan = make_hierarchical_plan(dealt("ABABAB"), 1);
  EXPECT_EQ(plan.nodes[0], (std::vector<RankRange>{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(plan.ranks_of(1), (std::vector<int>{1, 3, 5}));
}

TEST(HierarchicalPlan, EveryHostsNodesTileTheTree) {
  for (const auto& topology : {layout({1, 3, 1}), layout({5, 5}), layout({7}), layout({2, 1, 8}),
                               dealt("AABBAACC"), dealt("ABCABCA")}) {
    const int size = static_cast<int>(topology.host_of.size());
    for (int rank = 0; rank < size; ++rank) {
      const auto plan = make_hierarchical_plan(topology, rank);
      const TreeSum sum(own_piece_nodes(plan), size);  // throws unless they tile
      EXPECT_EQ(sum.nodes().front().lo, 0);
      EXPECT_EQ(sum.nodes().back().hi, size);
    }
  }
}

TEST(HierarchicalPlan, PairsWhereSumsOfNeighboursAreNodes) {
  const auto pairs = [](const Topology& topology) {
    return make_hierarchical_plan(topology, 0).pairs;
  };
  EXPECT_TRUE(pairs(layout({1, 1, 1, 1})));
  EXPECT_TRUE(pairs(layout({2, 2, 2, 2})));
  EXPECT_TRUE(pairs(layout({1, 1, 1, 1, 1, 1, 1, 1})));
  EXPECT_FALSE(pairs(layout({3, 3, 3, 3})));
  EXPECT_FALSE(pairs(layout({1, 1, 2, 4})));
  EXPECT_FALSE(pairs(layout({2, 1, 1, 1})));
  EXPECT_FALSE(pairs(dealt("ABCDABCD")));
}

/// Values whose sum depends on the order.
std::vector<std::vector<float>> order_sensitive(int size, int64_t count) {
  std::vector<std::vector<float>> values;
  for (int rank = 0; rank < size; ++rank) {
    values.emplace_back();
    for (int64_t i = 0; i < count; ++i)
      values.back().push_back(std::ldexp(1.0f + static_cast<float>(rank * 31 + i * 7) * 1e-3f,
                                         static_cast<int>((rank * 5 + i) % 13)));
  }
  return values;
}

void expect_tree_bits(const Topology& topology, int64_t count, ReduceOp op) {
  const int size = static_cast<int>(topology.host_of.size());
  const auto values = order_sensitive(size, count);
  std::vector<const void*> leaves;
  for (const auto& value : values) leaves.push_back(value.data());
  std::vector<float> want(static_cast<size_t>(count));
  void* out = want.data();
  reduce(leaves, std::span(&out, 1), count, DType::kFloat32, op, size);
  for (int rank = 0; rank < size; ++rank) {
    const TreeSum sum(own_piece_nodes(make_hierarchical_plan(topology, rank)), size);
    std::vector<std::vector<float>> partials;
    for (const auto& node : sum.nodes()) {
      partials.emplace_back(static_cast<size_t>(count));
      void* partial = partials.back().data();
      const auto lo = static_cast<size_t>(node.lo);
      reduce(std::span(leaves).subspan(lo, static_cast<size_t>(node.size())),
             std::span(&partial, 1), count, DType::kFloat32, ReduceOp::kSum, 1);
    }
    std::vector<const void*> nodes;
    for (const auto& partial : partials) nodes.push_back(partial.data());
    std::vector<float> got(static_cast<size_t>(count));
    std::vector<float> again(static_cast<size_t>(count));
    void* outs[] = {got.data(), again.data()};
    sum.run(nodes, outs, count, DType::kFloat32, op);
    EXPECT_EQ(got, want) << "rank " << rank << " of " << size;
    EXPECT_EQ(again, want);
  }
}

TEST(TreeSum, GivesTheBitsOfTheTreeForEveryLayout) {
  for (const auto& topology : {layout({1, 1}), layout({3, 2}), layout({1, 3, 1}), layout({5, 6}),
                               layout({4, 4}), dealt("ABABABA"), dealt("AABBAACCA")}) {
    expect_tree_bits(topology, 10'001, ReduceOp::kSum);
    expect_tree_bits(topology, 77, ReduceOp::kAvg);
  }
}

TEST(Scratch, GivesAlignedMemoryThatDoesNotOverlap) {
  Scratch scratch;
  for (int round = 0; round < 2; ++round) {
    scratch.reset();
    std::byte* last = nullptr;
    for (const int64_t bytes : {1, 100, 5'000'000, 64, 0}) {
      std::byte* const got = scratch.take(bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(got) % 64, 0u);
      EXPECT_NE(got, last);
      if (bytes > 0) got[bytes - 1] = std::byte{1};
      last = bytes > 0 ? got : last;
    }
  }
}

}  // namespace
}  // namespace lockstep
