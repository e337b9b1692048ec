#pragma once
// States of averaging of all ranks, gathered, compared and written as text.

#include <string>
#include <vector>

#include "lockstep/comm_hook.h"
#include "lockstep/process_group.h"

namespace lockstep {

/// By bucket.
using BucketNames = std::vector<std::vector<std::string>>;
std::string to_text(const BucketNames& buckets);
BucketNames bucket_names_from_text(const std::string& text);

/// Collective: on rank 0 every rank's `own`, on the others nothing. Errors: kMismatch when names,
/// types or shapes differ between ranks.
std::vector<HookState> gather_states(ProcessGroup& group, const HookState& own);

/// Why a state cannot be gone on from by so many ranks with this hook; empty when it can.
std::string misfit(const AveragingState& state, int ranks, const std::string& hook);

/// Collective: whether every rank says `fits`; false too when none has anything.
bool all_fit(ProcessGroup& group, bool fits);

}  // namespace lockstep
