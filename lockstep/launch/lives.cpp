#include "lockstep/launch/lives.h"

#include <algorithm>
#include <string>

namespace lockstep {
namespace {

constexpr const char* kPrefix = "life/";
constexpr const char* kGaveUpPrefix = "gave_up/";

std::string key_of(int rank) {
  return kPrefix + std::to_string(rank);
}

std::string gave_up_key(int rank) {
  return kGaveUpPrefix + std::to_string(rank);
}

/// Of several that are gone, those whose end explains that of the others.
std::vector<int> first_causes(Store& store, const std::vector<int>& gone, Deadline deadline) {
  const auto keys = store.list(kGaveUpPrefix, deadline);
  std::vector<int> causes;
  for (const int rank : gone) {
    if (std::find(keys.begin(), keys.end(), gave_up_key(rank)) == keys.end()) {
      causes.push_back(rank);
    }
  }
  return causes.empty() ? gone : causes;
}

}  // namespace

void show_life(Store& store, int rank, Deadline deadline) {
  store.hold(key_of(rank), "", kLifeTtl, deadline);
}

void give_up_life(Store& store, int rank, Deadline deadline) {
  store.set(gave_up_key(rank), "", deadline);
}

std::vector<int> dead_ranks(Store& store, const std::vector<int>& ranks, Deadline deadline) {
  std::vector<std::string> keys;
  for (const int rank : ranks) keys.push_back(key_of(rank));
  if (store.check(keys, deadline)) return {};
  // What changed since the first version of all: what was erased is told too.
  constexpr uint64_t kFirst = 1;
  const auto changes = store.watch(kPrefix, kFirst, deadline.at_most(50ms)).changes;
  std::vector<int> dead;
  for (const int rank : ranks) {
    const auto is_gone = [key = key_of(rank)](const Store::Change& change) {
      return change.key == key && !change.value;
    };
    if (std::any_of(changes.begin(), changes.end(), is_gone)) dead.push_back(rank);
  }
  return dead.size() < 2 ? dead : first_causes(store, dead, deadline);
}

}  // namespace lockstep
