#pragma once
// States of averaging of all ranks: gathered, compared and written as text.

#include <string>
#include <vector>

#include "lockstep/comm_hook.h"
#include "lockstep/process_group.h"

namespace lockstep::inline internal {

/// By bucket.
using BucketNames = std::vector<std::vector<std::string>>;
std::string to_text(const BucketNames& buckets);
BucketNames bucket_names_from_text(const std::string& text);

/// Collective: returns every rank's `own` on rank 0, and nothing on the others. Errors: kMismatch
/// if names, types or shapes differ between ranks.
std::vector<HookState> gather_states(ProcessGroup& group, const HookState& own);

/// The reason why this number of ranks with this hook cannot resume from a state; empty if they
/// can.
std::string misfit(const CommHookState& state, int ranks, const std::string& hook);

/// Collective: true if every rank passes `fits` = true.
bool all_fit(ProcessGroup& group, bool fits);

// State of a hook by bucket, loaded from a checkpoint.

/// "3.rest".
std::string bucket_key(int bucket, const std::string& name);

/// Loaded state for buckets that have not been used yet.
class LoadedBuckets {
 public:
  void load(const HookState& state) { tensors_ = state; }
  void forget() { tensors_.clear(); }
  const HookState& left() const { return tensors_; }
  /// Copies the loaded state of this key into `place`, once; without one, leaves `place` unchanged.
  /// Errors: kCorrupt for another shape or type.
  void take(const std::string& key, const at::Tensor& place);

 private:
  HookState tensors_;
};

}  // namespace lockstep::inline internal
