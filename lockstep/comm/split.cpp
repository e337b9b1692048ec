#include "lockstep/comm/split.h"

#include <algorithm>

namespace lockstep {

std::vector<int> members_of_color(std::span<const ColorKey> all, int color) {
  std::vector<int> members;
  for (int rank = 0; color >= 0 && rank < static_cast<int>(all.size()); ++rank) {
    if (all[static_cast<size_t>(rank)].color == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return all[static_cast<size_t>(a)].key < all[static_cast<size_t>(b)].key;
  });
  return members;
}

}  // namespace lockstep
