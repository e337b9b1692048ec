#pragma once
// State of a hook by bucket, on its way from a checkpoint.

#include <string>

#include "lockstep/comm_hook.h"

namespace lockstep {

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
