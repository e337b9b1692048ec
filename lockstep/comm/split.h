#pragma once
// Who is in which group after a split, as a pure function.

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// What a rank says in a split. Travels as two int32.
struct ColorKey {
  int32_t color = 0;  ///< Negative: in no group.
  int32_t key = 0;
};

/// The ranks of `color`, by key, equal keys by rank; none for a negative color. `all` by rank.
std::vector<int> members_of_color(std::span<const ColorKey> all, int color);

}  // namespace lockstep
