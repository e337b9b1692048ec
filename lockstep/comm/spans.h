#pragma once
// A range of a buffer, and two ways to cut one into parts.

#include <algorithm>
#include <cstdint>

#include "lockstep/base/rounding.h"

namespace lockstep::inline internal {

/// Elements [begin, end).
struct Span {
  int64_t begin = 0;
  int64_t end = 0;
  constexpr int64_t size() const { return end - begin; }
  bool operator==(const Span&) const = default;
};

/// The `index`-th of `parts` slices of `count` elements, for ranks that write to one buffer. The
/// slices tile the buffer. All but the last that is not empty have the same size, a multiple of
/// `granule` elements (at least 1). So no two ranks write to one cache line, and that size bounds
/// staging.
constexpr Span slice_of(int64_t count, int parts, int index, int64_t granule) {
  const int64_t granules = divide_up(count, granule);
  const int64_t size = divide_up(granules, parts) * granule;
  const int64_t begin = std::min(size * index, count);
  return {begin, std::min(begin + size, count)};
}

/// Part `index` of `whole` in `parts` parts, for links with equal shares. The parts are in order,
/// without gaps, and of nearly equal size. They are cut at multiples of 64 elements from the start,
/// so that they share no cache line or vector.
constexpr Span part_of(Span whole, int index, int parts) {
  constexpr int64_t kCut = 64;  // elements
  const int64_t units = divide_up(whole.size(), kCut);
  const auto cut = [&](int64_t i) {
    // No overflow: i <= parts, and units * parts stays below 2^63 for all sizes in use.
    return std::min(whole.end, whole.begin + units * i / parts * kCut);
  };
  return {cut(index), cut(index + 1)};
}

}  // namespace lockstep::inline internal
