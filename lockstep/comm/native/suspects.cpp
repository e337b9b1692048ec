#include "lockstep/comm/native/suspects.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace lockstep {
namespace {

using Awaited = std::vector<std::optional<std::vector<int>>>;

bool awaits(const Awaited& awaited, int rank, int other) {
  const auto& list = awaited[static_cast<size_t>(rank)];
  return list && std::find(list->begin(), list->end(), other) != list->end();
}

}  // namespace

std::vector<int> late_ranks(const Awaited& awaited) {
  const auto size = static_cast<int>(awaited.size());
  std::vector<int> silent;
  std::vector<int> late;
  for (int rank = 0; rank < size; ++rank) {
    if (awaited[static_cast<size_t>(rank)]) continue;
    silent.push_back(rank);
    for (int other = 0; other < size; ++other) {
      if (!awaits(awaited, other, rank)) continue;
      late.push_back(rank);
      break;
    }
  }
  return late.empty() ? silent : late;
}

Cut widest_cut(const Awaited& awaited) {
  const auto size = static_cast<int>(awaited.size());
  Cut widest;
  for (int rank = 0; rank < size; ++rank) {
    Cut cut{rank, {}};
    for (int other = 0; other < size; ++other) {
      if (awaits(awaited, rank, other) && awaits(awaited, other, rank)) cut.from.push_back(other);
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
