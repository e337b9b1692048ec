#pragma once
// A range of a buffer, and two ways to cut one into parts.

#include <algorithm>
#include <cstdint>

#include "lockstep/base/rounding.h"

namespace lockstep {

/// Elements [begin, end).
struct Span {
  int64_t begin = 0;
  int64_t end = 0;
  constexpr int64_t size() const { return end - begin; }
  bool operator==(const Span&) const = default;
};

/// The `index`-th of `parts` slices of `count` elements, for ranks that write to one buffer. They
/// tile it; all but the last that is not empty have the same size, a multiple of `granule` elements
/// (at least 1), so that no two ranks write to one cache line, and that one size bounds staging.
constexpr Span slice_of(int64_t count, int parts, int index, int64_t granule) {
  const int64_t granules = divide_up(count, granule);
  const int64_t size = divide_up(granules, parts) * granule;
  const int64_t begin = std::min(size * index, count);
  return {begin, std::min(begin + size, count)};
}

/// Part `index` of `whole` in `parts` parts, for links that are to carry the same: in order,
/// without gaps, of nearly equal size, cut at multiples of 64 elements from the start (so that
/// parts do not share a cache line or a vector).
constexpr Span part_of(Span whole, int index, int parts) {
  constexpr int64_t kCut = 64;  // elements
  const int64_t units = divide_up(whole.size(), kCut);
  const auto cut = [&](int64_t i) {
    // Without overflow: i <= parts, and units * parts stays below 2^63 for all sizes in use.
    return std::min(whole.end, whole.begin + units * i / parts * kCut);
  };
  return {cut(index), cut(index + 1)};
}

}  // namespace lockstep
