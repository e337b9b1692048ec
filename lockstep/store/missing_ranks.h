#pragma once

#include <string>
#include <vector>

#include "lockstep/deadline.h"
#include "lockstep/store.h"

namespace lockstep::inline internal {

/// Those of `ranks` that have no key of `prefix` and the rank, in their order. One request,
/// whatever their number: all ranks may send it at the same time. Errors: the store's.
std::vector<int> missing_ranks(Store& store, const std::string& prefix,
                               const std::vector<int>& ranks, Deadline deadline);
/// The same of the ranks [0, size).
std::vector<int> missing_ranks(Store& store, const std::string& prefix, int size,
                               Deadline deadline);

}  // namespace lockstep::inline internal
