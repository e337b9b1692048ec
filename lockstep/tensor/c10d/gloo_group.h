#pragma once
// The back end "c10d:gloo": collectives by libtorch's own ProcessGroupGloo, over TCP, also within a
// host.
//
// It comes with the tensor collectives: a program that uses lockstep/collectives.h has it in
// backends(), and GroupOptions::backend = "c10d:gloo" takes it.
//
// Differences to native: sums have Gloo's order; allocate() gives memory of this rank alone; a rank
// whose process died is known when Gloo's connection to it breaks. What libtorch 1.13's Gloo does
// not have is made of what it has: int16 and bfloat16 are reduced as int32 and float32, at twice
// the bytes, min and max of floats as whole numbers in their order (so NaN wins), and
// reduce_scatter is an all_reduce of a copy. Headers are compared before each collective:
// checked_group.h. The first such group makes the process ignore SIGPIPE, unless it has a handler:
// Gloo writes to connections that peers have closed.

#include <memory>
#include <string>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"

namespace lockstep {

/// Errors: kUnavailable where it is not built in.
std::unique_ptr<GroupImpl> make_gloo_group(const GroupSpec& spec, Deadline deadline);

/// Was this built where Gloo's headers are? If not, `why_not` says so.
bool gloo_is_built_in(std::string* why_not);

}  // namespace lockstep
