#include "lockstep/comm/reduce_tree.h"

#include <gtest/gtest.h>

#include <string>

#include "lockstep/error.h"

namespace lockstep {
namespace {

std::string tree_text(int lo, int hi) {
  if (hi - lo == 1) return std::to_string(lo);
  const int mid = tree_mid(lo, hi);
  return "(" + tree_text(lo, mid) + "+" + tree_text(mid, hi) + ")";
}

TEST(ReduceTree, SplitsAtTheLargestPowerOfTwoBelow) {
  EXPECT_EQ(tree_text(0, 2), "(0+1)");
  EXPECT_EQ(tree_text(0, 3), "((0+1)+2)");
  EXPECT_EQ(tree_text(0, 4), "((0+1)+(2+3))");
  EXPECT_EQ(tree_text(0, 7), "(((0+1)+(2+3))+((4+5)+6))");
  EXPECT_EQ(tree_text(5, 8), "((5+6)+7)");
}

TEST(ReduceTree, NodesOfAHostAreTheLargestThatFit) {
  using Nodes = std::vector<RankRange>;
  EXPECT_EQ(tree_nodes({0, 8}, 8), (Nodes{{0, 8}}));
  EXPECT_EQ(tree_nodes({0, 3}, 4), (Nodes{{0, 2}, {2, 3}}));
  EXPECT_EQ(tree_nodes({3, 7}, 8), (Nodes{{3, 4}, {4, 6}, {6, 7}}));
  EXPECT_EQ(tree_nodes({4, 7}, 7), (Nodes{{4, 7}}));
  EXPECT_EQ(tree_nodes({2, 2}, 4), Nodes{});
}

// Adds texts instead of numbers: hosts of any sizes must give the one-host formula.
TEST(ReduceTree, AdditionsOverHostsGiveTheTreeOfOneHost) {
  for (int size = 1; size <= 17; ++size) {
    for (int cut = 0; cut <= size; ++cut) {
      for (int second = cut; second <= size; ++second) {
        std::vector<RankRange> nodes;
        for (const RankRange host : {RankRange{0, cut}, {cut, second}, {second, size}}) {
          for (const auto& node : tree_nodes(host, size)) nodes.push_back(node);
        }
        std::vector<std::string> values;
        for (const auto& node : nodes) values.push_back(tree_text(node.lo, node.hi));
        for (const auto& add : tree_additions(nodes, size)) {
          auto& left = values[static_cast<size_t>(add.left)];
          left = "(" + left + "+" + values[static_cast<size_t>(add.right)] + ")";
        }
        ASSERT_EQ(values[0], tree_text(0, size)) << size << " " << cut << " " << second;
      }
    }
  }
}

TEST(ReduceTree, NodesThatDoNotTileAreRefused) {
  const std::vector<RankRange> gap = {{0, 2}, {3, 4}};
  const std::vector<RankRange> foreign = {{0, 1}, {1, 3}, {3, 4}};
  const std::vector<RankRange> more = {{0, 4}, {4, 5}};
  EXPECT_THROW(tree_additions(gap, 4), Error);
  EXPECT_THROW(tree_additions(foreign, 4), Error);
  EXPECT_THROW(tree_additions(more, 4), Error);
}

}  // namespace
}  // namespace lockstep
