#pragma once
// The benchmark's own ranks: forked processes that meet over a store in the parent.

#include <functional>
#include <string>
#include <vector>

#include "lockstep/world.h"

namespace lockstep::bench {

/// Runs `body` in `size` forked processes and returns what each returned, by rank. Call before
/// anything starts a thread. Errors: kPeerLost when a rank ends without a result (it has said why
/// on standard error); the others are killed then.
std::vector<std::string> run_ranks(int size, const std::function<std::string(const World&)>& body);

}  // namespace lockstep::bench
