#pragma once

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

/// Serves the agent's requests until it closes its end, and then ends the process. Returns in each
/// requested rank.
void serve_forks(UniqueFd agent);

/// Threads that this process has started and that a forked one would lack.
int threads_to_lose();

}  // namespace lockstep::inline internal
