#pragma once

namespace lockstep {

/// A first small computation, forward and backward: what it loads and sets up, later ones find
/// ready, also in processes that are forked from this one (warm_start()). Starts no threads and
/// leaves random numbers alone. Cost: some ten milliseconds, once.
void warm_up();

}  // namespace lockstep
