#pragma once
// Steps from one state of a job to the next, used by membership.cpp. Each changes `state` and
// appends the necessary actions. Pure.

#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/rendezvous/membership.h"

namespace lockstep::inline internal {

using MemberActions = std::vector<MemberAction>;

/// Adds `agent` to the counts, or removes it (by = -1).
void count_agent(MembershipState* state, const MembershipState::Agent& agent, int by = 1);

void publish_record(const MembershipState& state, MemberActions* actions);

/// Any ▶ ended. why: why there is no restart.
void end_job(MembershipState* state, std::optional<Failure> failure, MemberActions* actions,
             std::string why = "");
void end_job_by(MembershipState* state, const std::string& cause, MemberActions* actions);

/// Running ▶ leaving.
void begin_leaving(MembershipState* state, std::string why, MemberActions* actions,
                   std::optional<Failure> failure = std::nullopt);

/// Leaving with no workers left ▶ forming, or running at once, or ended.
void begin_forming(MembershipState* state, JobTime now, MemberActions* actions);

/// Forming ▶ running, if enough are here.
void try_to_form(MembershipState* state, JobTime now, MemberActions* actions);

/// Forming: when a generation starts with the present agents, if they are enough since `since`.
JobTime forms_at(const MembershipState& state, JobTime since);

}  // namespace lockstep::inline internal
