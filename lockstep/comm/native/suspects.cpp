#include "lockstep/comm/native/suspects.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace lockstep {
namespace {

using Awaited = std::vector<std::optional<std::vector<int>>>;

/// For each rank, whether it awaits each other one.
std::vector<std::vector<bool>> table_of(const Awaited& awaited) {
  const size_t size = awaited.size();
  std::vector<std::vector<bool>> table(size, std::vector<bool>(size));
  for (size_t rank = 0; rank < size; ++rank) {
    if (!awaited[rank]) continue;
    for (const int other : *awaited[rank]) {
      if (const auto at = static_cast<size_t>(other); at < size) table[rank][at] = true;
    }
  }
  return table;
}

}  // namespace

std::vector<int> late_ranks(const Awaited& awaited) {
  const auto table = table_of(awaited);
  std::vector<int> silent;
  std::vector<int> late;
  for (size_t rank = 0; rank < awaited.size(); ++rank) {
    if (awaited[rank]) continue;
    silent.push_back(static_cast<int>(rank));
    const bool is_awaited =
        std::any_of(table.begin(), table.end(), [rank](const auto& row) { return row[rank]; });
    if (is_awaited) late.push_back(static_cast<int>(rank));
  }
  return late.empty() ? silent : late;
}

Cut widest_cut(const Awaited& awaited) {
  const auto table = table_of(awaited);
  Cut widest;
  for (size_t rank = 0; rank < table.size(); ++rank) {
    Cut cut{static_cast<int>(rank), {}};
    for (size_t other = 0; other < table.size(); ++other) {
      if (table[rank][other] && table[other][rank]) cut.from.push_back(static_cast<int>(other));
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
