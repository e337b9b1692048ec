#include "lockstep/world/lives.h"

#include <fmt/format.h>
#include <unistd.h>

#include <set>

#include "lockstep/base/host_name.h"
#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/store/missing_ranks.h"

namespace lockstep::inline internal {
namespace {

constexpr const char* kPrefix = "life/";
constexpr const char* kGaveUpPrefix = "gave_up/";
constexpr const char* kLeftPrefix = "left/";

std::string key_of(int rank) {
  return kPrefix + std::to_string(rank);
}

std::string gave_up_key(int rank) {
  return kGaveUpPrefix + std::to_string(rank);
}

std::string left_key(int rank) {
  return kLeftPrefix + std::to_string(rank);
}

/// The ranks of `ranks` without a key at `prefix`; all of them if none is without.
std::vector<int> without(Store& store, const std::string& prefix, const std::vector<int>& ranks,
                         Deadline deadline) {
  const auto rest = missing_ranks(store, prefix, ranks, deadline);
  return rest.empty() ? ranks : rest;
}

/// Of several dead ranks, those whose end explains the others'.
std::vector<int> first_causes(Store& store, const std::vector<int>& gone, Deadline deadline) {
  return without(store, kGaveUpPrefix, without(store, kLeftPrefix, gone, deadline), deadline);
}

/// Keys of lives that existed and were erased.
std::set<std::string> erased_lives(Store& store, const std::vector<std::string>& keys,
                                   Deadline deadline) {
  std::set<std::string> gone;
  try {
    // Changes since the first version of all; they include erased keys.
    constexpr uint64_t kFirst = 1;
    for (const auto& change : store.watch(kPrefix, kFirst, deadline.at_most(50ms)).changes) {
      if (!change.value) gone.insert(change.key);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    // So many keys were erased since that the first version is forgotten. In a job that far, every
    // rank has come.
    const auto alive = store.list(kPrefix, deadline);
    gone.insert(keys.begin(), keys.end());
    for (const auto& key : alive) gone.erase(key);
  }
  return gone;
}

}  // namespace

bool show_life(Store& store, int rank, Deadline deadline) {
  const auto who = fmt::format("process {} of host {}", ::getpid(), host_name());
  return store.set_with_lease(key_of(rank), who, kLifeTtl, deadline);
}

std::string registered_process(Store& store, int rank, Deadline deadline) {
  return store.try_get(key_of(rank), deadline).value_or("a process that has ended since");
}

void give_up_life(Store& store, int rank, const std::string& why, Deadline deadline) {
  store.set(gave_up_key(rank), why, deadline);
}

std::optional<std::string> why_gave_up(Store& store, int rank, Deadline deadline) {
  return store.try_get(gave_up_key(rank), deadline);
}

void leave_life(Store& store, int rank, Deadline deadline) {
  store.set(left_key(rank), "", deadline);
}

void return_to_life(Store& store, int rank, Deadline deadline) {
  store.erase(left_key(rank), deadline);
}

bool has_left(Store& store, int rank, Deadline deadline) {
  return store.try_get(left_key(rank), deadline).has_value();
}

std::vector<int> dead_ranks(Store& store, const std::vector<int>& ranks, Deadline deadline) {
  std::vector<std::string> keys;
  for (const int rank : ranks) keys.push_back(key_of(rank));
  if (store.check(keys, deadline)) return {};
  const auto gone = erased_lives(store, keys, deadline);
  std::vector<int> dead;
  for (const int rank : ranks) {
    if (gone.contains(key_of(rank))) dead.push_back(rank);
  }
  return dead.size() < 2 ? dead : first_causes(store, dead, deadline);
}

}  // namespace lockstep::inline internal
