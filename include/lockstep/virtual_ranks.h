#pragma once
// Virtual ranks: the parts of a global batch, fixed in number, whatever the number of ranks that
// work on them. They are the leaves of the one tree of additions (comm/reduce_tree.h), so a run
// with S virtual ranks gives the same bits on every number of ranks that can share S virtual ranks.

#include <c10/core/Device.h>

#include <cstdint>

namespace lockstep {

/// Virtual ranks [first, first + count) of `total`: those of one rank.
struct VirtualRankRange {
  int first = 0;
  int count = 1;
  int total = 1;
  bool operator==(const VirtualRankRange&) const = default;
};

/// The virtual ranks of `rank` of `size`, equally many on every rank. The tree over S virtual ranks
/// splits at powers of two, so a rank's virtual ranks are one node of it, and the ranks' tree its
/// top, when their number S / P is a power of two or P is 1. Anything else is refused:
/// kInvalidArgument naming the numbers of ranks that can share so many virtual ranks.
VirtualRankRange deal_virtual_ranks(int virtual_ranks, int rank, int size);

/// Seeds libtorch's CPU generator, and with a `device` of CUDA that of this thread's current
/// device, for one virtual rank's forward of one step, so that what dropout draws depends on (seed,
/// step, virtual rank) and neither on the rank nor on what was drawn before. Cost: some
/// microseconds.
void seed_virtual_rank(uint64_t seed, int64_t step, int virtual_rank,
                       c10::Device device = c10::kCPU);

}  // namespace lockstep
