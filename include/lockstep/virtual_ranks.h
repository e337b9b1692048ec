#pragma once
// Virtual ranks: the parts of a global batch, in a number that does not depend on the number of
// ranks. They are the leaves of the one tree of additions (see ProcessGroup). So a run with V
// virtual ranks has the same bits on every number of ranks up to V.

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

/// The virtual ranks of `rank` of `size`: consecutive ones, in the order of the ranks. The first V
/// mod P ranks have one more than the others. Errors: kInvalidArgument for fewer than one virtual
/// rank, and for more ranks than virtual ranks.
VirtualRankRange deal_virtual_ranks(int virtual_ranks, int rank, int size);

/// Seeds libtorch's CPU generator, and for a CUDA `device` also that of this thread's current
/// device, for one virtual rank's forward of one step. So dropout depends on (seed, step, virtual
/// rank) and neither on the rank nor on earlier draws. Cost: some microseconds.
void seed_virtual_rank(uint64_t seed, int64_t step, int virtual_rank,
                       c10::Device device = c10::kCPU);

}  // namespace lockstep
