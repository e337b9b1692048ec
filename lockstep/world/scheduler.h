#pragma once
// The process that MindSpore's launchers start besides the ranks.

#include "lockstep/base/socket.h"
#include "lockstep/deadline.h"

namespace lockstep {

/// Stays until the ranks that meet at `place` are done: somebody has listened there, and nobody
/// does any more. It holds no connection, so that rank 0 does not wait for it. Errors: kTimeout
/// when nobody listens there before `deadline`.
void stay_for_ranks(const Endpoint& place, Deadline deadline);

}  // namespace lockstep
