#pragma once
// When several launchers' variables are set: which one is about this process.

#include <string>
#include <vector>

#include "lockstep/world/decision.h"

namespace lockstep {

/// `first`, or one below it in precedence that a batch system's lone process started: under
/// `srun -n1` the step says 0 of 1, and what runs in it knows better.
Finding* innermost(std::vector<Finding>& findings, Finding* first);

/// Does `other` only speak of what an agent was started in, whose rank this process is?
bool is_around_agent(const Finding& chosen, const Finding& other);

/// Why what `other` says does not contradict what `chosen` says: "" when it does.
std::string why_no_conflict(const Finding& chosen, const Finding& other);

/// The identity of `chosen`, with the places that it does not tell taken from another that agrees
/// in rank and size and tells them all: a script sets RANK from SLURM_PROCID and no more.
Identity refined(const Finding& chosen, const std::vector<Finding>& findings);

}  // namespace lockstep
