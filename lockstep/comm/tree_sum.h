#pragma once
// Adds values of subtrees in the fixed order of reduce_tree.h.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/comm/reduce_tree.h"
#include "lockstep/types.h"

namespace lockstep::inline internal {

/// The operation of an inner node: an average is divided once, at the root.
constexpr ReduceOp below_the_root(ReduceOp op) {
  return op == ReduceOp::kAvg ? ReduceOp::kSum : op;
}

/// True if the tree over `nodes`, which tile [0, size), has the shape of the tree over as many
/// leaves.
bool has_plain_shape(const std::vector<RankRange>& nodes, int size);

/// Sums values of tree nodes in the fixed order.
class TreeSum {
 public:
  /// `nodes`: tiling [0, size), sorted.
  TreeSum(std::vector<RankRange> nodes, int size);

  const std::vector<RankRange>& nodes() const { return nodes_; }

  /// outs[j] = the whole tree, from values[i] of nodes()[i]. `count` elements each; kAvg divides by
  /// the tree's size. An output may be a value at the same address. Cost: one pass if the tree over
  /// the values has the shape of the tree over as many ranks (all nodes equal, for example).
  /// Otherwise single additions, on blocks in the cache.
  void run(std::span<const void* const> values, std::span<void* const> outs, int64_t count,
           DType dtype, ReduceOp op) const;

 private:
  void run_block(std::vector<const void*> values, std::span<void* const> outs, int64_t count,
                 DType dtype, ReduceOp op, std::byte* scratch) const;

  std::vector<RankRange> nodes_;
  int size_;
  std::vector<TreeAdd> additions_;
  bool plain_;  // the additions are those of a tree over nodes_.size() ranks
};

}  // namespace lockstep::inline internal
