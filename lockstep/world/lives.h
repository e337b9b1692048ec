#pragma once
// Which ranks of the job live, by the store: for ranks without any other connection yet.

#include <optional>
#include <string>
#include <vector>

#include "lockstep/store.h"

namespace lockstep::inline internal {

/// Announces that `rank` lives, by a leased key "life/RANK", which exists until the process's
/// client of the store is gone. A further call renews it; an otherwise silent client must do so
/// within kLifeTtl, or it is disconnected. False: another live process holds the key; see
/// registered_process(). One request. Errors: the store's.
bool show_life(Store& store, int rank, Deadline deadline);
/// "process 3819 of host a": the process that has come as `rank`. One request. Errors: the store's.
std::string registered_process(Store& store, int rank, Deadline deadline);
/// The longest possible: a frozen rank does not count as dead.
inline constexpr auto kLifeTtl = kMaxLeaseTtl;

/// Announces that `rank`, which lives, has given up because of another's death, with the reason
/// `why`. Its own end is then expected. One request. Errors: the store's.
void give_up_life(Store& store, int rank, const std::string& why, Deadline deadline);

/// Why `rank` gave up; nothing if it did not. One request. Errors: the store's.
std::optional<std::string> why_gave_up(Store& store, int rank, Deadline deadline);

/// Announces that `rank` has ended all its work with others in good order: its process may end now
/// without counting as dead. One request. Errors: the store's.
void leave_life(Store& store, int rank, Deadline deadline);
/// Work with others begins again. One request. Errors: the store's.
void return_to_life(Store& store, int rank, Deadline deadline);
/// Whether it has left and not returned. One request. Errors: the store's.
bool has_left(Store& store, int rank, Deadline deadline);

/// The ranks of `ranks` that have come and do not live any more. Of several, leaves out those that
/// left in good order or gave up before, unless all of them did. One request while all live.
/// Errors: the store's.
std::vector<int> dead_ranks(Store& store, const std::vector<int>& ranks, Deadline deadline);

}  // namespace lockstep::inline internal
