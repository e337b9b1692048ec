#pragma once
// Who is late, and which connection is cut, told from whom each rank waits for. Pure functions.

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// `awaited[r]`: the ranks from which rank r still expects something; nothing: r does not say, so
/// it is somewhere else, or frozen. Returns those that do not say it and are awaited; where nobody
/// awaits one of them, all that do not say it.
std::vector<int> late_ranks(const std::vector<std::optional<std::vector<int>>>& awaited);

/// Nothing passes between `rank` and any of `from`. No cut: -1.
struct Cut {
  int rank = -1;
  std::vector<int> from;
};

/// All ranks being there: two that wait for each other are cut off from each other (one that waits
/// alone may only wait for what the other cannot send yet); the result is the rank with the most of
/// those, the lowest of several.
Cut widest_cut(const std::vector<std::optional<std::vector<int>>>& awaited);

/// For the store: "0 2".
std::string encode_ranks(const std::vector<int>& ranks);
std::vector<int> decode_ranks(const std::string& text);

}  // namespace lockstep
