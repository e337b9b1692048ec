#pragma once
// The order in which a policy keeps checkpoints and files of weights.

#include "lockstep/checkpoint_folder.h"

namespace lockstep::inline internal {

/// Whether `policy` keeps `a` rather than `b`. kTopK: if it has the better metric; an entry without
/// one, or with one that was not finite, is worse than all others. Otherwise, and of equals: if it
/// has the higher step.
bool keeps_rather(const KeepPolicy& policy, const CheckpointEntry& a, const CheckpointEntry& b);

}  // namespace lockstep::inline internal
