#pragma once
// Cutting a buffer into one part a rank.

#include <algorithm>
#include <cstdint>

namespace lockstep {

/// Elements [begin, begin + count).
struct Slice {
  int64_t begin = 0;
  int64_t count = 0;
};

/// The `index`-th of `parts` slices of `count` elements. They tile it; all but the last that is not
/// empty have the same size, a multiple of `granule` elements (at least 1), so that no two ranks
/// write to one cache line.
constexpr Slice slice_of(int64_t count, int parts, int index, int64_t granule) {
  const int64_t granules = (count + granule - 1) / granule;
  const int64_t size = (granules + parts - 1) / parts * granule;
  const int64_t begin = std::min(size * index, count);
  return {begin, std::min(size, count - begin)};
}

}  // namespace lockstep
