#pragma once
// Whether a new agent can take part in a job, and which agents are still missing. Pure.

#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/rendezvous/membership.h"

namespace lockstep::inline internal {

/// Whether it was started for the same number of hosts, which a job with fixed ranks requires.
bool same_hosts(const MembershipRules& rules, const JoinRequest& request);

/// Why this agent, which is not among state.agents, cannot take part; nothing if it can. Reasons:
/// another secret, number of hosts or program, or its --node_rank is taken.
///
/// Another reason is another command on the host of a present agent. Most likely that is a second
/// job whose user left --rdzv_id out: it would end the first one's workers, or wait as its spare.
/// A command differs by its arguments, or by the working folder, where a relative path in it may
/// mean another file. Agents that all have an --rdzv_id are of one job by the word of their user,
/// whatever their arguments. Those of another role, or with a --node_rank of a static rendezvous,
/// have commands of their own.
///
/// On another host the same is no reason. A job that goes on may get new arguments host by host,
/// and arguments may name a host's own paths. That agent warns; see difference_text().
std::optional<RefuseAgent> refusal_of(const MembershipState& state, const AgentHere& event);

/// When the job ends well: agents that waited for a place, have run nothing, and are no spares.
/// One is on the host of an agent that took part, so its command was most likely started twice. Or
/// its command is another one, so it is most likely of another job. Neither holds for agents that
/// all have an --rdzv_id.
std::vector<RefuseAgent> refusals_at_end(const MembershipState& state);

/// What an agent that takes part warns of: its arguments are not the leader's.
std::optional<std::string> difference_text(const JobRecord& record, const JoinRequest& own);

/// "4", or "2:4": the syntax of --nnodes.
std::string hosts_text(int min_nodes, int max_nodes);

/// "2 of 3 hosts are here; waiting for host 2 at 10.0.0.1:29500".
std::string waiting_text(const MembershipState& state);

/// "host 1, 2 of 3 did not come to 10.0.0.1:29500 within 600 s": why the job ends.
std::string late_text(const MembershipState& state);

}  // namespace lockstep::inline internal
