#pragma once
// The creation of the control segment that the ranks of a host share.

#include "lockstep/comm/group_impl.h"
#include "lockstep/comm/native/shm/control.h"
#include "lockstep/comm/native/shm/segment.h"
#include "lockstep/deadline.h"

namespace lockstep::shm {

/// The descriptor is rank 0's, through which the others open the memory; the others have none.
struct ControlMemory {
  UniqueFd fd;
  Mapping mapping;
};

/// Collective: the group's rank 0 makes the segment and publishes its place in the store; the
/// others map it. Errors: kTimeout, kUnavailable (on all ranks, if rank 0 has no memory).
ControlMemory map_control(const GroupSpec& spec, Deadline deadline);

/// Publishes that this rank has mapped it and holds its life mutex, and waits for the others.
/// Errors: kTimeout, which names the missing ranks; kPeerLost.
void attach(const GroupSpec& spec, const Control& control, Deadline deadline);

}  // namespace lockstep::shm
