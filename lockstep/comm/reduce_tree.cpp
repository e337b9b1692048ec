#include "lockstep/comm/reduce_tree.h"

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

void collect_nodes(RankRange node, RankRange part, std::vector<RankRange>& nodes) {
  if (node.hi <= part.lo || part.hi <= node.lo) return;
  if (part.lo <= node.lo && node.hi <= part.hi) {
    nodes.push_back(node);
    return;
  }
  const int mid = tree_mid(node.lo, node.hi);
  collect_nodes({node.lo, mid}, part, nodes);
  collect_nodes({mid, node.hi}, part, nodes);
}

/// Reduces `node`, starting at nodes[next], and returns the index that holds it.
int reduce_node(RankRange node, std::span<const RankRange> nodes, size_t& next,
                std::vector<TreeAdd>& additions) {
  if (next < nodes.size() && nodes[next] == node) return static_cast<int>(next++);
  if (node.size() < 2 || next >= nodes.size() || nodes[next].lo != node.lo) {
    throw Error(ErrorCode::kInvalidArgument, "tree_additions: the nodes do not tile the tree");
  }
  const int mid = tree_mid(node.lo, node.hi);
  const int left = reduce_node({node.lo, mid}, nodes, next, additions);
  const int right = reduce_node({mid, node.hi}, nodes, next, additions);
  additions.push_back({left, right});
  return left;
}

}  // namespace

std::vector<RankRange> tree_nodes(RankRange part, int size) {
  std::vector<RankRange> nodes;
  if (part.size() > 0) collect_nodes({0, size}, part, nodes);
  return nodes;
}

std::vector<TreeAdd> tree_additions(std::span<const RankRange> nodes, int size) {
  std::vector<TreeAdd> additions;
  size_t next = 0;
  reduce_node({0, size}, nodes, next, additions);
  if (next != nodes.size()) {
    throw Error(ErrorCode::kInvalidArgument, "tree_additions: more nodes than the tree has");
  }
  return additions;
}

}  // namespace lockstep::inline internal
