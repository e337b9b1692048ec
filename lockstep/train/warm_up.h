#pragma once

namespace lockstep {

/// Runs a small computation, forward and backward, so that libraries are loaded and set up for
/// later ones. This also holds in processes forked from this one (start_fork_server()). Starts no
/// threads and draws no random numbers. Cost: some ten milliseconds, once.
void warm_up();

}  // namespace lockstep
