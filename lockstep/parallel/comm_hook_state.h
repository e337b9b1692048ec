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
std::string misfit(const CommHookState& state, int ranks, const std::string& hook);

/// Collective: whether every rank says `fits`; false too when none has anything.
bool all_fit(ProcessGroup& group, bool fits);

// State of a hook by bucket, on its way from a checkpoint.

/// "3.rest".
std::string bucket_key(int bucket, const std::string& name);

/// What was loaded for buckets that have not been seen yet.
class LoadedBuckets {
 public:
  void load(const HookState& state) { tensors_ = state; }
  void forget() { tensors_.clear(); }
  const HookState& left() const { return tensors_; }
  /// Copies what was loaded under this key into `place`, once; where nothing was, leaves it alone.
  /// Errors: kCorrupt for another shape or type.
  void take(const std::string& key, const at::Tensor& place);

 private:
  HookState tensors_;
};

}  // namespace lockstep
