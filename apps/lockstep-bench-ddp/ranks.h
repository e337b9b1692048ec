#pragma once
// The benchmark's own ranks: forked processes that meet over a store in the parent.

#include <functional>
#include <string>
#include <vector>

#include "lockstep/world.h"

namespace lockstep::bench {

/// Runs `body` in `size` forked processes and returns their results, by rank. Call it before any
/// thread starts. Errors: kPeerLost if a rank ends without a result (after it printed the reason on
/// standard error); the others are then killed.
std::vector<std::string> run_ranks(int size, const std::function<std::string(const World&)>& body);

}  // namespace lockstep::bench
