#pragma once
// How the ranks of a new group learn of each other.

#include <chrono>
#include <string>
#include <vector>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"
#include "lockstep/world.h"

namespace lockstep {

/// Meets all ranks of `world` in its store and returns what the back end needs to know. Collective.
/// Who shares memory is tried (sharing.h): GroupSpec::host_ids differ from what `world` says where
/// that does not hold, and rank 0 warns. Cost: about ten requests a rank, however many there are;
/// none of its keys is left.
/// Errors: kTimeout naming the ranks that did not come, kMismatch (another build, or another back
/// end asked for; names both).
GroupSpec meet(const World& world, const std::string& backend, std::chrono::milliseconds timeout,
               Deadline deadline);

/// What each rank of `spec` gives as `own`, "HOST:PORT", by rank; a group does that once. Cost:
/// four requests a rank, and three more for rank 0; none of its keys is left. Errors: kTimeout
/// naming the ranks that did not come, and those of Making.
std::vector<std::string> exchange_endpoints(const GroupSpec& spec, const std::string& own,
                                            Deadline deadline);

/// For engines that would wait for late members without a name, or not at all: returns when all of
/// `spec` have called it, which a group does once. Cost and errors: as above.
void await_members(const GroupSpec& spec, Deadline deadline);

}  // namespace lockstep
