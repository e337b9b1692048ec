#pragma once
// Whether an agent that comes can take part in a job. Pure.

#include <optional>

#include "lockstep/launch/rendezvous/membership.h"

namespace lockstep {

/// Whether it was started for the same number of nodes. Of a job with fixed ranks all must be.
bool same_nodes(const MembershipRules& rules, const Offer& offer);

/// Why this agent, which is not among state.agents, cannot take part; nothing: it can. It has
/// another secret, number of nodes or program, or its --node_rank is taken.
std::optional<RefuseAgent> refusal_of(const MembershipState& state, const AgentHere& event);

}  // namespace lockstep
