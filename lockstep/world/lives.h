#pragma once
// Which ranks of the job live, for those that have nothing else in common yet: the store tells.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/store.h"

namespace lockstep {

/// Says that `rank` has come, and lives until its client of the store is gone, as a process's are
/// when it ends: a held key, "life/RANK". Again: renews it, which a client that is silent otherwise
/// has to do within kLifeTtl, lest it be disconnected. False: another that lives said so before,
/// who_lives(). One request. Errors: the store's.
bool show_life(Store& store, int rank, Deadline deadline);
/// "process 3819 of host a", which has come as `rank`. One request. Errors: the store's.
std::string who_lives(Store& store, int rank, Deadline deadline);
/// The longest there is: a frozen rank does not count as dead.
inline constexpr auto kLifeTtl = kMaxHoldTtl;

/// Says that `rank`, which lives, has given up because another died, as `why` tells: should it end
/// now, that is no news. One request. Errors: the store's.
void give_up_life(Store& store, int rank, const std::string& why, Deadline deadline);

/// Why `rank` gave up; nothing: it did not. One request. Errors: the store's.
std::optional<std::string> why_gave_up(Store& store, int rank, Deadline deadline);

/// Says that `rank` has ended all that it does with others, in good order: should its process end
/// now, nobody has died. One request. Errors: the store's.
void leave_life(Store& store, int rank, Deadline deadline);
/// It takes up something with others again. One request. Errors: the store's.
void return_to_life(Store& store, int rank, Deadline deadline);
/// Did it leave, and not return? One request. Errors: the store's.
bool has_left(Store& store, int rank, Deadline deadline);

/// Those of `ranks` that have come and do not live any more. Of several, without those that left in
/// good order, or gave up before, unless all of them did. One request while all live. Errors: the
/// store's.
std::vector<int> dead_ranks(Store& store, const std::vector<int>& ranks, Deadline deadline);

}  // namespace lockstep
