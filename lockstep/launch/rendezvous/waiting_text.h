#pragma once
// Whom a job waits for, in words.

#include <string>

#include "lockstep/launch/rendezvous/membership.h"

namespace lockstep {

/// "4", or "2:4": as --nnodes takes it.
std::string nodes_text(int min_nodes, int max_nodes);

/// "2 of 3 nodes are here; waiting for node 2 at 10.0.0.1:29500".
std::string waiting_text(const MembershipState& state);

/// "node 1, 2 of 3 did not come to 10.0.0.1:29500 within 600 s": why the job ends.
std::string late_text(const MembershipState& state);

}  // namespace lockstep
