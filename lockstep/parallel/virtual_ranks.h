#pragma once
// Subtrees of the tree over virtual ranks, sums over them, and what each virtual rank reads.

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/comm/reduce_tree.h"
#include "lockstep/virtual_ranks.h"

namespace lockstep {

/// The subtrees whose sums a rank can compute alone: the largest ones, in order, whose leaves are
/// all among its virtual ranks. At most 2 log2(total); one where it has an aligned power of two of
/// virtual ranks.
std::vector<RankRange> owned_subtrees(const VirtualRankRange& range);
/// Those of all ranks, rank after rank.
std::vector<RankRange> all_subtrees(int virtual_ranks, int size);

/// Whether a sum over ranks, in the order of ProcessGroup, is the sum over virtual ranks: every
/// rank owns one subtree, and the tree above them has the shape of the tree over the ranks. So it
/// is where V / P is a power of two, and where P is 1. Elsewhere: see SubtreeReduction.
bool ranks_add_as_tree(int virtual_ranks, int size);

/// How many of a rank's sums at hand, latest first, its virtual rank first + index is added to. The
/// sums are then again those of owned_subtrees() of the leaves so far.
int sums_to_add(const VirtualRankRange& range, int index);

/// The tree's sum of some leaves; those of one rank, say.
double tree_sum(std::span<const double> leaves);

/// One list of what each virtual rank reads, cut in pieces of `batch` and laid in turn: the first
/// piece of every list, the second of every list, ... The lists are equally long; their last pieces
/// may be short. A batch of (number of lists) x `batch` rows then has one part a virtual rank.
std::vector<int64_t> lay_in_turn(const std::vector<std::vector<int64_t>>& lists, int64_t batch);

}  // namespace lockstep
