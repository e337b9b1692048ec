#pragma once
// Whether a new agent can take part in a job, and which agents are still missing. Pure.

#include <optional>
#include <string>

#include "lockstep/launch/rendezvous/membership.h"

namespace lockstep::inline internal {

/// Whether it was started for the same number of hosts, which a job with fixed ranks requires.
bool same_nodes(const MembershipRules& rules, const JoinRequest& request);

/// Why this agent, which is not among state.agents, cannot take part; nothing if it can. Reasons:
/// another secret, number of hosts or program, or its --node_rank is taken.
std::optional<RefuseAgent> refusal_of(const MembershipState& state, const AgentHere& event);

/// "4", or "2:4": the syntax of --nnodes.
std::string nodes_text(int min_nodes, int max_nodes);

/// "2 of 3 hosts are here; waiting for host 2 at 10.0.0.1:29500".
std::string waiting_text(const MembershipState& state);

/// "host 1, 2 of 3 did not come to 10.0.0.1:29500 within 600 s": why the job ends.
std::string late_text(const MembershipState& state);

}  // namespace lockstep::inline internal
