#pragma once
// Shards: the parts of a global batch, fixed in number, whatever the number of ranks that work on
// them. They are the leaves of the one tree of additions (comm/reduce_tree.h), so a run with S
// shards gives the same bits on every number of ranks that can share S shards.

#include <c10/core/Device.h>

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// Shards [first, first + count) of `total`: those of one rank.
struct ShardRange {
  int first = 0;
  int count = 1;
  int total = 1;
  bool operator==(const ShardRange&) const = default;
};

/// The shards of `rank` of `size`, equally many on every rank. The tree over S shards splits at
/// powers of two, so a rank's shards are one node of it, and the ranks' tree its top, when their
/// number S / P is a power of two or P is 1. Anything else is refused: kInvalidArgument naming the
/// numbers of ranks that can share so many shards.
ShardRange shards_of_rank(int shards, int rank, int size);

/// How many of the sums at hand, latest first, leaf `index` of `count` is added to: the sums are
/// then again those of whole nodes of the tree, after the last leaf one sum of all. There are never
/// more than log2(count) + 1 of them.
int sums_to_add(int index, int count);

/// The tree's sum of some leaves; those of one rank, say.
double tree_sum(std::span<const double> leaves);

/// One list of what each shard reads, cut in pieces of `batch` and laid in turn: the first piece of
/// every list, the second of every list, ... The lists are equally long; their last pieces may be
/// short. A batch of (number of lists) x `batch` rows then has one part a shard.
std::vector<int64_t> lay_in_turn(const std::vector<std::vector<int64_t>>& lists, int64_t batch);

/// Seeds libtorch's CPU generator, and with a `device` of CUDA that of this thread's current
/// device, for one shard's forward of one step, so that what dropout draws depends on (seed, step,
/// shard) and neither on the rank nor on what was drawn before. Cost: some microseconds.
void seed_shard(uint64_t seed, int64_t step, int shard, c10::Device device = c10::kCPU);

}  // namespace lockstep
