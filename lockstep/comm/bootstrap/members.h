#pragma once
// The exchange by which the ranks of a new group learn of each other.

#include <chrono>
#include <string>
#include <vector>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"
#include "lockstep/world.h"

namespace lockstep::inline internal {

/// Meets all ranks of `world` in its store and returns the description that the back end needs.
/// Collective. Shared memory is tested (sharing.h): if the test fails, GroupSpec::host_ids differ
/// from those of `world`, and rank 0 warns. Cost: about ten requests per rank, whatever their
/// number; none of its keys remains. Errors: kTimeout, which names the missing ranks; kMismatch
/// (another build, or another back end requested; names both).
GroupSpec meet(const World& world, const std::string& backend, std::chrono::milliseconds timeout,
               Deadline deadline);

/// Exchanges the endpoints `own`, "HOST:PORT", of all ranks of `spec`; returns them by rank. A
/// group does that once. Cost: four requests per rank, and three more for rank 0; none of its keys
/// remains. Errors: kTimeout, which names the missing ranks, and those of Making.
std::vector<std::string> exchange_endpoints(const GroupSpec& spec, const std::string& own,
                                            Deadline deadline);

/// Returns when all ranks of `spec` have called it; a group calls it once. For engines that would
/// wait for late members without naming them, or not at all. Cost and errors: as above.
void await_members(const GroupSpec& spec, Deadline deadline);

}  // namespace lockstep::inline internal
