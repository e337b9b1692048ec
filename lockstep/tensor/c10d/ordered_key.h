#pragma once
// Floating-point numbers as whole numbers in the same order, for engines that leave open what NaN
// makes of a least or greatest one.

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace lockstep {

template <class Float>
using OrderedKey = std::conditional_t<sizeof(Float) == 4, int32_t, int64_t>;

/// Keys of numbers are ordered as the numbers are, -0 before 0; that of NaN is the greatest of all,
/// or the least.
template <class Float>
OrderedKey<Float> ordered_key(Float value, bool nan_is_greatest) {
  using Limits = std::numeric_limits<OrderedKey<Float>>;
  if (value != value) return nan_is_greatest ? Limits::max() : Limits::min();
  const auto bits = std::bit_cast<OrderedKey<Float>>(value);
  return bits < 0 ? bits ^ Limits::max() : bits;  // among negative ones more bits are less
}

template <class Float>
Float from_ordered_key(OrderedKey<Float> key) {
  return std::bit_cast<Float>(key < 0 ? key ^ std::numeric_limits<OrderedKey<Float>>::max() : key);
}

}  // namespace lockstep
