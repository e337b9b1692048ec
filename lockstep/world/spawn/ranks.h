#pragma once
// The two ways in which spawn() runs ranks. Both return the ranks' failures in their order.

#include <chrono>
#include <functional>
#include <vector>

#include "lockstep/world/spawn/rank_failure.h"

namespace lockstep {

using RankBody = std::function<void(int rank)>;

/// Errors: kInvalidArgument (this process has threads), kIo.
std::vector<RankFailure> run_as_processes(int num_ranks, const RankBody& body,
                                          std::chrono::milliseconds grace);

std::vector<RankFailure> run_as_threads(int num_ranks, const RankBody& body);

}  // namespace lockstep
