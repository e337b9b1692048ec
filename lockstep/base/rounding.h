#pragma once
// Integers, rounded up. No number is negative, and sums stay below 2^63.

#include <cstdint>

namespace lockstep::inline internal {

/// Number of parts of `size` that hold `value`. `size` is at least 1.
constexpr int64_t divide_up(int64_t value, int64_t size) {
  return (value + size - 1) / size;
}

/// The least multiple of `unit` that is not below `value`. `unit` is at least 1.
constexpr int64_t round_up(int64_t value, int64_t unit) {
  return divide_up(value, unit) * unit;
}

}  // namespace lockstep::inline internal
