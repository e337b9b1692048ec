#include "lockstep/comm/rank_answers.h"

#include <map>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::inline internal {

bool exist_within(Store& store, std::span<const std::string> keys, Deadline deadline) {
  try {
    store.wait(keys, deadline);
    return true;
  } catch (const Error& missing) {
    if (missing.code() != ErrorCode::kTimeout) throw;
    return false;
  }
}

std::vector<std::optional<std::string>> answers_by_rank(Store& store, const std::string& prefix,
                                                        int size, Deadline deadline) {
  std::map<std::string, std::optional<std::string>> by_key;
  // watch() from version 0 returns all that is there.
  for (auto& [key, value] : store.watch(prefix, 0, deadline).changes)
    by_key[key] = std::move(value);
  std::vector<std::optional<std::string>> by_rank;
  for (int rank = 0; rank < size; ++rank)
    by_rank.push_back(std::move(by_key[prefix + std::to_string(rank)]));
  return by_rank;
}

}  // namespace lockstep::inline internal
