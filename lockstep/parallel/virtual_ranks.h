#pragma once
// Subtrees of the tree over virtual ranks, sums over them, and the samples of each virtual rank.

#include <c10/core/Device.h>

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/comm/reduce_tree.h"
#include "lockstep/distributed_data_parallel.h"

namespace lockstep::inline internal {

/// The subtrees whose sums a rank can compute alone: the largest ones, in order, whose leaves are
/// all among its virtual ranks. At most 2 log2(total); one if the rank has an aligned power of two
/// of virtual ranks.
std::vector<RankRange> owned_subtrees(const VirtualRankRange& range);
/// The subtrees of all ranks, rank after rank.
std::vector<RankRange> all_subtrees(int virtual_ranks, int size);

/// True if a sum over ranks, in the order of ProcessGroup, is the sum over virtual ranks. Then
/// every rank owns one subtree, and the tree above them has the shape of the tree over the ranks.
/// This holds if V / P is a power of two, and if P is 1. Otherwise: see SubtreeReduction.
bool ranks_add_as_tree(int virtual_ranks, int size);

/// Number of a rank's present sums, latest first, to which its virtual rank first + index is added.
/// The sums are then again those of owned_subtrees() of the leaves so far.
int sums_to_add(const VirtualRankRange& range, int index);

/// lockstep::seed_virtual_rank(); for a CUDA `device` also libtorch's generator of this thread's
/// current device.
void seed_virtual_rank(uint64_t seed, int64_t step, int virtual_rank, c10::Device device);

/// The tree's sum of some leaves, such as those of one rank.
double tree_sum(std::span<const double> leaves);

/// Merges the sample lists of the virtual ranks, cut into pieces of `batch`: the first piece of
/// every list, the second of every list, ... The lists have equal length; their last pieces may be
/// short. The loader makes a batch of each piece.
std::vector<int64_t> lay_in_turn(const std::vector<std::vector<int64_t>>& lists, int64_t batch);

}  // namespace lockstep::inline internal
