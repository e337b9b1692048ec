#pragma once
// The chunks of a bucket that a hook sends, to compute one while another is on its way.

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

#include "lockstep/base/rounding.h"

namespace lockstep::inline internal {

/// Elements of a chunk: 8 MiB of float32, which a core compresses in a millisecond or two. As
/// bfloat16 a chunk takes 34 ms to a peer over 1 Gbit/s, many times the 0.1 ms for starting another
/// message.
inline constexpr int64_t kChunkElements = int64_t{1} << 21;

/// Calls work(begin, count) for parts of [0, count), in this rank's intra-op threads. Parts start
/// at multiples of `granule`; the result for an item must not depend on their boundaries.
template <class Work>
void in_threads(int64_t count, int64_t granule, const Work& work) {
  at::parallel_for(0, divide_up(count, granule), 1, [&](int64_t begin, int64_t end) {
    work(begin * granule, std::min(end * granule, count) - begin * granule);
  });
}

}  // namespace lockstep::inline internal
