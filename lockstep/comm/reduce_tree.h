#pragma once
// The fixed order of every reduction, as pure functions.
//
// Over ranks [lo, hi) the value is tree[lo, mid) + tree[mid, hi) with mid = lo + the largest power
// of two below hi - lo. The shape of a node depends on its length alone. So any transport may
// compute any node whose ranks it can reach, and the bits are the same.

#include <span>
#include <vector>

namespace lockstep::inline internal {

/// Ranks [lo, hi).
struct RankRange {
  int lo = 0;
  int hi = 0;
  int size() const { return hi - lo; }
  bool operator==(const RankRange&) const = default;
};

/// Where node [lo, hi) splits. hi - lo is at least 2.
constexpr int tree_mid(int lo, int hi) {
  int half = 1;
  while (half * 2 < hi - lo) half *= 2;
  return lo + half;
}

/// The largest nodes of the tree over [0, size) that lie in `part`, in order; they tile it. A host
/// that holds the ranks `part` must send these values: it may not add two of them. At most 2
/// log2(size) nodes.
std::vector<RankRange> tree_nodes(RankRange part, int size);

/// value[left] = value[left] + value[right]; indices into the nodes given.
struct TreeAdd {
  int left = 0;
  int right = 0;
  bool operator==(const TreeAdd&) const = default;
};

/// Additions that turn the values of `nodes` into the value of [0, size) in value[0], in a valid
/// order. `nodes` are sorted nodes of the tree that tile [0, size): for example the tree_nodes of
/// each host, one after the other. Errors: kInvalidArgument.
std::vector<TreeAdd> tree_additions(std::span<const RankRange> nodes, int size);

}  // namespace lockstep::inline internal
