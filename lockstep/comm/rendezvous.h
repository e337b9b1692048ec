#pragma once
// How the ranks of a new group learn of each other.

#include <string>

#include "lockstep/base/deadline.h"
#include "lockstep/comm/group_impl.h"
#include "lockstep/launch/world.h"

namespace lockstep {

/// Meets all ranks of `world` in its store and returns what the back end needs to know. Collective.
/// Cost: rank 0 reads one key a rank and answers with one list; the others write one and read one.
/// Errors: kTimeout naming the ranks that did not come, kMismatch (another build, or another back
/// end asked for; names both).
GroupSpec meet(const World& world, const std::string& backend, std::chrono::milliseconds timeout,
               Deadline deadline);

/// For engines that would wait for late members without a name: returns when all of `spec` have
/// called it, which a group does once. Errors: kTimeout naming the ranks that did not come.
void await_members(const GroupSpec& spec, Deadline deadline);

}  // namespace lockstep
