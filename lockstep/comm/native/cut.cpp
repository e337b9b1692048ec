#include "lockstep/comm/native/cut.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace lockstep {

Cut widest_cut(const std::vector<std::vector<int>>& awaited) {
  const auto size = static_cast<int>(awaited.size());
  const auto awaits = [&](int rank, int other) {
    const auto& list = awaited[static_cast<size_t>(rank)];
    return std::find(list.begin(), list.end(), other) != list.end();
  };
  Cut widest;
  for (int rank = 0; rank < size; ++rank) {
    Cut cut{rank, {}};
    for (int other = 0; other < size; ++other) {
      if (awaits(rank, other) && awaits(other, rank)) cut.from.push_back(other);
    }
    if (cut.from.size() > widest.from.size()) widest = std::move(cut);
  }
  return widest;
}

std::string encode_ranks(const std::vector<int>& ranks) {
  return fmt::format("{}", fmt::join(ranks, " "));
}

std::vector<int> decode_ranks(const std::string& text) {
  std::istringstream words(text);
  std::vector<int> ranks;
  for (int rank = 0; words >> rank;) ranks.push_back(rank);
  return ranks;
}

}  // namespace lockstep
