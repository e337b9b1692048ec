#pragma once
// Sums over virtual ranks, and what each reads.

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/virtual_ranks.h"

namespace lockstep {

/// How many of the sums at hand, latest first, leaf `index` of `count` is added to: the sums are
/// then again those of whole nodes of the tree, after the last leaf one sum of all. There are never
/// more than log2(count) + 1 of them.
int sums_to_add(int index, int count);

/// The tree's sum of some leaves; those of one rank, say.
double tree_sum(std::span<const double> leaves);

/// One list of what each virtual rank reads, cut in pieces of `batch` and laid in turn: the first
/// piece of every list, the second of every list, ... The lists are equally long; their last pieces
/// may be short. A batch of (number of lists) x `batch` rows then has one part a virtual rank.
std::vector<int64_t> lay_in_turn(const std::vector<std::vector<int64_t>>& lists, int64_t batch);

}  // namespace lockstep
