#include "lockstep/comm/creation/making.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/creation/rank_groups.h"
#include "lockstep/comm/group_error.h"
#include "lockstep/comm/look_pause.h"
#include "lockstep/world/lives.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kStoreLimit = 1s;
/// A connection may end some moments before the store has the rank that died, or before the first
/// rank that gave up has written the reason.
constexpr auto kKnownLate = 300ms;
constexpr auto kKnownPause = 10ms;
/// A member that is late in a split may wait in the old group, which times out a little later.
constexpr auto kOldKnownLate = 3s;

bool is_watched(const GroupSpec& spec) {
  return spec.rank_groups != nullptr && spec.size > 1;
}

std::vector<int> dead_of(const GroupSpec& spec, const std::vector<int>& ranks) {
  std::vector<int> named;
  for (const int rank : ranks) named.push_back(spec.world_ranks[static_cast<size_t>(rank)]);
  const auto dead = dead_ranks(*spec.store, named, Deadline::after(kStoreLimit));
  std::vector<int> members;
  for (const int rank : ranks) {
    const int name = spec.world_ranks[static_cast<size_t>(rank)];
    if (std::find(dead.begin(), dead.end(), name) != dead.end()) members.push_back(rank);
  }
  return members;
}

/// The error of a split whose old group has ended: a member that noticed it does not join.
std::optional<Error> end_of_old(const GroupSpec& spec) {
  if (spec.split_of.empty()) return std::nullopt;
  const auto text =
      spec.store->try_get(group_error_key(spec.split_of), Deadline::after(kStoreLimit));
  if (!text) return std::nullopt;
  const Error error = decode_group_error(*text);
  return Error(error.code(), std::string("split: the old group ended: ") + error.what());
}

/// If the old groups ended because of the death of a rank outside this group, that death.
Error died(const GroupSpec& spec, const std::vector<int>& dead) {
  const int first = spec.world_ranks[static_cast<size_t>(dead.front())];
  const auto why = why_gave_up(*spec.store, first, Deadline::after(kStoreLimit));
  if (why) return Error(ErrorCode::kPeerLost, *why);
  if (has_left(*spec.store, first, Deadline::after(kStoreLimit))) {
    return Error(ErrorCode::kPeerLost,
                 fmt::format("creating the process group: {} left: all process groups there were "
                             "ended in good order, then the process",
                             spec.rank_names(dead)));
  }
  return Error(ErrorCode::kPeerLost,
               fmt::format("creating the process group: {} {}", spec.rank_names(dead), kDied));
}

std::vector<int> all_ranks(const GroupSpec& spec) {
  std::vector<int> ranks(static_cast<size_t>(spec.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// A connection that ends, or memory of a peer that no longer exists.
bool may_be_of_a_death(ErrorCode code) {
  return code == ErrorCode::kPeerLost || code == ErrorCode::kIo || code == ErrorCode::kUnavailable;
}

/// How long another rank may take to write the reason, or the store to learn of a death.
std::chrono::milliseconds known_late(const GroupSpec& spec, const Error& error) {
  if (may_be_of_a_death(error.code())) return kKnownLate;
  return !spec.split_of.empty() && error.code() == ErrorCode::kTimeout ? kOldKnownLate : 0ms;
}

/// The cause that the first rank gave. A death comes first; in a split, the end of the old group.
Error agreed_cause(const GroupSpec& spec, const Error& error) {
  try {
    auto dead = dead_of(spec, all_ranks(spec));
    auto old = end_of_old(spec);
    const auto limit = Deadline::after(known_late(spec, error));
    while (dead.empty() && !old && !limit.passed()) {
      const auto group_error =
          spec.store->try_get(group_error_key(spec), Deadline::after(kStoreLimit));
      if (group_error) return decode_group_error(*group_error);
      std::this_thread::sleep_for(kKnownPause);
      dead = dead_of(spec, all_ranks(spec));
      old = end_of_old(spec);
    }
    const Error cause = old ? *old : dead.empty() ? error : died(spec, dead);
    return agree_on_group_error(spec, cause, Deadline::after(kStoreLimit));
  } catch (const Error& store_error) {
    log_debug(fmt::format("{}: the store lacks why group '{}' was not made: {}",
                          spec.rank_name(spec.rank), spec.name, store_error.what()));
    return with_store_lost(error, store_error);
  }
}

}  // namespace

Making::Making(const GroupSpec& spec)
    : spec_(spec),
      pause_(look_pause(static_cast<size_t>(spec.size))),
      next_look_(std::chrono::steady_clock::now() + pause_) {}

template <class Ask>
auto Making::in_slices(const std::vector<int>& ranks, Deadline deadline, const Ask& ask) {
  while (is_watched(spec_)) {
    const auto slice = deadline.at_most(pause_);
    try {
      return ask(slice);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout || deadline.passed()) throw;
    }
    look(ranks);
  }
  return ask(deadline);
}

void Making::wait(std::span<const std::string> keys, const std::vector<int>& ranks,
                  Deadline deadline) {
  in_slices(ranks, deadline, [&](Deadline slice) { spec_.store->wait(keys, slice); });
}

std::string Making::get(const std::string& key, const std::vector<int>& ranks, Deadline deadline) {
  return in_slices(ranks, deadline, [&](Deadline slice) { return spec_.store->get(key, slice); });
}

void Making::look(const std::vector<int>& ranks) {
  const auto now = std::chrono::steady_clock::now();
  if (!is_watched(spec_) || now < next_look_) return;
  check(ranks);
  next_look_ = std::chrono::steady_clock::now() + pause_;
}

void Making::check(const std::vector<int>& ranks) {
  std::optional<Error> cause;
  std::optional<std::string> group_error;
  try {
    const auto dead = dead_of(spec_, ranks);
    if (dead.empty())
      group_error = spec_.store->try_get(group_error_key(spec_), Deadline::after(kStoreLimit));
    if (!group_error) cause = end_of_old(spec_);  // from which the death may become known
    if (!cause && !dead.empty()) cause = died(spec_, dead);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    return;  // a stalled store has nothing new about the ranks
  }
  if (cause) throw try_to_agree(spec_, *cause, Deadline::after(kStoreLimit));
  if (group_error) throw decode_group_error(*group_error);
}

Error unmade(const GroupSpec& spec, const Error& error) {
  // Invalid arguments are the same on every rank; other errors of one rank are unknown to the
  // others.
  if (!is_watched(spec) || error.code() == ErrorCode::kInvalidArgument) return error;
  spec.rank_groups->note_failure();
  Error cause = agreed_cause(spec, error);
  if (cause.code() == ErrorCode::kPeerLost)
    spec.rank_groups->lost(nullptr, spec.world_ranks, cause);
  return cause;
}

}  // namespace lockstep::inline internal
