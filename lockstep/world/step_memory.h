#pragma once
// The memory in which this process reports its steps: its agent's progress memory, or its own.

#include "lockstep/world/step_slot.h"

namespace lockstep::inline internal {

/// This worker's slot of its agent (LOCKSTEP_STEPS); null: there is none.
StepSlot* slot_of_agent();

/// The same, else one in memory of this process (OwnSteps), made by the first call. A forked child
/// makes memory of its own, because the other is its parent's. Null for ranks that are threads, but
/// for rank 0: their process has one slot. Also null if a process got no memory at its first call:
/// it does not try again.
/// Cost: after the first call a few nanoseconds, and no system call.
StepSlot* slot_for_reports();

}  // namespace lockstep::inline internal
