#pragma once
// The back end "c10d:gloo": collectives by libtorch's own ProcessGroupGloo, over TCP, also within a
// host.
//
// It comes with the tensor collectives: a program that uses lockstep/tensor/collectives.h has it in
// backends(), and GroupOptions::backend = "c10d:gloo" takes it.
//
// Differences to native: sums have Gloo's order; allocate() gives memory of this rank alone; a rank
// whose process died is known when Gloo's connection to it breaks; int16 and bfloat16 have no
// reductions (kInvalidArgument, nothing is sent). reduce_scatter is an all_reduce of a copy, since
// libtorch 1.13's Gloo has none. Headers are compared before each collective: checked_group.h.

#include <memory>
#include <string>

#include "lockstep/base/deadline.h"
#include "lockstep/comm/group_impl.h"

namespace lockstep {

/// Errors: kUnavailable where it is not built in.
std::unique_ptr<GroupImpl> make_gloo_group(const GroupSpec& spec, Deadline deadline);

/// Was this built where Gloo's headers are? If not, `why_not` says so.
bool gloo_is_built_in(std::string* why_not);

/// What ProcessGroupGloo can reduce; data that only moves may be of any type.
inline bool gloo_reduces(DType dtype, ReduceOp op) {
  return can_reduce(dtype, op) && dtype != DType::kInt16 && dtype != DType::kBFloat16;
}

}  // namespace lockstep
