#pragma once
// What the averaging of gradients remembers between steps, to save and to go on from.

#include <map>
#include <string>
#include <vector>

#include "lockstep/comm/process_group.h"
#include "lockstep/parallel/comm_hook.h"

namespace lockstep {

/// Of one rank.
struct AveragingState {
  /// What it fits: "hook" (CommHook::describe()), "ranks", and "buckets", the names of their
  /// parameters, an empty line between two buckets. Empty: there is nothing to remember.
  std::map<std::string, std::string> about;
  HookState tensors;
};

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
