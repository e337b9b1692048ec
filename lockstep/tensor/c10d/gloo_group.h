#pragma once
// The back end "c10d:gloo": collectives by libtorch's own ProcessGroupGloo, over TCP, also within a
// host.
//
// It comes with the tensor collectives: a program that uses lockstep/collectives.h has it in
// backends(), and GroupOptions::backend = "c10d:gloo" selects it.
//
// Differences to native: sums have Gloo's order; allocate() gives memory of this rank alone; a
// process's death is noticed when Gloo's connection to it breaks. Operations that libtorch 1.13's
// Gloo lacks are emulated. Types int16 and bfloat16 are reduced as int32 and float32, at twice the
// bytes. The min and max of floats are reduced as integers in the floats' order (so NaN wins). A
// reduce_scatter is an all_reduce of a copy. Headers are compared before each collective:
// checked_group.h. The first such group makes the process ignore SIGPIPE, unless it has a handler:
// Gloo writes to connections that peers have closed.

#include <memory>
#include <string>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {

/// Errors: kUnavailable if it is not built in.
std::unique_ptr<GroupImpl> make_gloo_group(const GroupSpec& spec, Deadline deadline);

/// True if this was built with Gloo's headers. If not, `why_not` receives the reason.
bool gloo_is_built_in(std::string* why_not);

}  // namespace lockstep::inline internal
