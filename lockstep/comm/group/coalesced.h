#pragma once
// Many buffers in one call.

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/comm/group_impl.h"

namespace lockstep::inline internal {

/// Buffers [first, last) that travel as one, `count` elements in all.
struct Pack {
  size_t first = 0;
  size_t last = 0;
  int64_t count = 0;
  bool operator==(const Pack&) const = default;
};

/// Buffers below this travel with their neighbours: copying them costs less than a collective.
inline constexpr int64_t kPackedBelowBytes = 64 << 10;
inline constexpr int64_t kPackBytes = 1 << 20;

/// Packs that tile the buffers, in order: runs of neighbours below kPackedBelowBytes of at most
/// kPackBytes in all, and each larger buffer alone. A pack of empty buffers costs nothing.
std::vector<Pack> plan_packs(std::span<const int64_t> counts, int64_t element_bytes);

// The collectives of ProcessGroup with these names. `factor`: as in CollectiveOptions. Errors:
// kMismatch when the ranks' counts differ.

void all_reduce_coalesced(GroupImpl& impl, const GroupSpec& spec, std::span<const Buffer> buffers,
                          DType dtype, ReduceOp op, double factor, const Waiting& waiting);
void all_gather_coalesced(GroupImpl& impl, const GroupSpec& spec, std::span<const BufferPair> pairs,
                          DType dtype, const Waiting& waiting);
void reduce_scatter_coalesced(GroupImpl& impl, const GroupSpec& spec,
                              std::span<const BufferPair> pairs, DType dtype, ReduceOp op,
                              double factor, const Waiting& waiting);

}  // namespace lockstep::inline internal
