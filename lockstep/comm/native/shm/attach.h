#pragma once
// How the ranks of a host get their control segment.

#include "lockstep/comm/group_impl.h"
#include "lockstep/comm/native/shm/control.h"
#include "lockstep/comm/native/shm/segment.h"
#include "lockstep/deadline.h"

namespace lockstep::shm {

/// The descriptor is rank 0's, through which the others open the memory; none on the others.
struct ControlMemory {
  UniqueFd fd;
  Mapping mapping;
};

/// Collective: the group's rank 0 makes the segment and says through the store where it is; the
/// others map it. Errors: kTimeout, kUnavailable (on all ranks, when rank 0 has no memory).
ControlMemory map_control(const GroupSpec& spec, Deadline deadline);

/// Says that this rank has mapped it and holds its life mutex, and waits for the others. Errors:
/// kTimeout naming those who did not come, kPeerLost.
void attach(const GroupSpec& spec, const Control& control, Deadline deadline);

}  // namespace lockstep::shm
