#include "lockstep/store/missing_ranks.h"

#include <algorithm>
#include <numeric>

namespace lockstep::inline internal {

std::vector<int> missing_ranks(Store& store, const std::string& prefix,
                               const std::vector<int>& ranks, Deadline deadline) {
  const auto there = store.list(prefix, deadline);  // sorted
  std::vector<int> missing;
  for (const int rank : ranks) {
    const bool came = std::binary_search(there.begin(), there.end(), prefix + std::to_string(rank));
    if (!came) missing.push_back(rank);
  }
  return missing;
}

std::vector<int> missing_ranks(Store& store, const std::string& prefix, int size,
                               Deadline deadline) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return missing_ranks(store, prefix, ranks, deadline);
}

}  // namespace lockstep::inline internal
