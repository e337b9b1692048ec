#pragma once
// What the ranks of a group write into its store, each under a prefix and its rank, for others that
// read all of it.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/deadline.h"
#include "lockstep/store.h"

namespace lockstep::inline internal {

/// Waits for all `keys`. Returns false if one is missing at the deadline. Errors: the store's, but
/// for kTimeout.
bool exist_within(Store& store, std::span<const std::string> keys, Deadline deadline);

/// The values under `prefix` and each rank in [0, size), by rank; nothing for a missing key, and
/// for all if the store did not answer in time. Other keys are ignored. One request, whatever the
/// size: one or two requests per rank, from all ranks, would take the store of a large group too
/// long. Errors: the store's.
std::vector<std::optional<std::string>> answers_by_rank(Store& store, const std::string& prefix,
                                                        int size, Deadline deadline);

}  // namespace lockstep::inline internal
