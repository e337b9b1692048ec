#pragma once
// The native back end: our own transports, picked by where the ranks are.

#include <memory>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"

namespace lockstep {

/// All ranks on one host: shared memory; else two_level_group.h. Collective. Errors: as
/// ProcessGroup::create.
std::unique_ptr<GroupImpl> make_native_group(const GroupSpec& spec, Deadline deadline);

}  // namespace lockstep
