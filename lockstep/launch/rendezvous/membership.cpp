#include "lockstep/launch/rendezvous/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "lockstep/base/counted.h"
#include "lockstep/base/generation_token.h"
#include "lockstep/launch/rendezvous/admission.h"
#include "lockstep/launch/rendezvous/job_steps.h"
#include "lockstep/world/worker_env.h"

namespace lockstep::inline internal {
namespace {

using State = JobRecord::State;
using Agent = MembershipState::Agent;

/// Hosts named in an error.
constexpr size_t kMaxLostHosts = 8;

Failure host_failure(const Agent& agent, const ExitStatus& status) {
  Failure failure;
  failure.node_rank = std::max(agent.node_rank, 0);
  failure.host = agent.request.host;
  failure.status = status;
  return failure;
}

Failure lost_agent(const Agent& agent) {
  Failure failure = host_failure(agent, {1, 0});
  failure.cause = fmt::format("the agent of host {} ({}) died or cannot be reached",
                              failure.node_rank, failure.host);
  return failure;
}

Failure ended_by_user(const Agent& agent) {
  Failure failure = host_failure(agent, {0, agent.request.leaving});
  failure.cause = fmt::format("host {} ({}): was ended by {}", failure.node_rank, failure.host,
                              signal_name(agent.request.leaving));
  return failure;
}

/// A spare that was not needed ends well. Other agents that have run nothing learn why.
void end_well(MembershipState* state, MemberActions* actions) {
  for (RefuseAgent& refusal : refusals_at_end(*state)) actions->push_back(std::move(refusal));
  end_job(state, std::nullopt, actions);
}

/// Running: checks whether all are done, or another agent waits that could take part.
void look_at_running(MembershipState* state, JobTime now, MemberActions* actions) {
  const auto& counts = state->counts;
  if (counts.members == counts.done) return end_well(state, actions);
  // A job that is partly done is nearly over.
  const bool room = counts.members < state->rules.max_nodes && counts.done == 0;
  if (!room || counts.spares == 0) {
    state->newcomer_since.reset();
  } else if (!state->newcomer_since) {
    state->newcomer_since = now;
  } else if (now >= *state->newcomer_since + state->rules.batch) {
    begin_leaving(state, fmt::format("{} more came", counted(counts.spares, "host")), actions);
  }
}

void look(MembershipState* state, JobTime now, MemberActions* actions) {
  if (state->state == State::kRunning) look_at_running(state, now, actions);
  if (state->state == State::kLeaving && state->counts.busy == 0) {
    begin_forming(state, now, actions);
  } else if (state->state == State::kForming) {
    try_to_form(state, now, actions);
  }
}

/// True if this agent cannot take part. This agent gets the reason, or all if the job cannot begin.
bool refused(MembershipState* state, const AgentHere& event, MemberActions* actions) {
  const auto refusal = refusal_of(*state, event);
  const MembershipRules& rules = state->rules;
  if (!refusal) {
    if (rules.fixed_ranks) state->by_wish[event.request.node_rank.value_or(0)] = event.id;
    return false;
  }
  const bool ours = event.request.mark == rules.mark;
  if (ours && rules.fixed_ranks && state->generation == 0 && !same_hosts(rules, event.request)) {
    end_job_by(state, refusal->why, actions);
  } else {
    actions->push_back(*refusal);
  }
  return true;
}

/// A new leader takes over the generation that ended with the last leader.
void inherit(MembershipState* state, const JoinRequest& request) {
  if (request.generation <= state->generation) return;
  state->generation = request.generation;
  state->inherited = true;
  state->launch = launch_of(request.token);
  RestartRecord& restarts = state->restarts;
  restarts.restarts = std::max(restarts.restarts, request.restart_count);
  restarts.early_failures = request.early_failures;
  restarts.in_a_row = request.failures_in_a_row;
  state->expected_hosts = std::min(request.num_nodes - 1, state->rules.max_nodes);
}

/// The earlier job's last agents are gone; their keys were leases that had not run out. None of the
/// present agents took part, so this job begins as any other; only the numbers of generations go
/// on.
void begin_anew_without_heirs(MembershipState* state) {
  const auto is_heir = [](const auto& entry) { return entry.second.generation > 0; };
  const auto& agents = state->agents;
  if (!state->inherited || std::any_of(agents.begin(), agents.end(), is_heir)) return;
  state->inherited = false;
  state->generation = 0;
  state->launch.clear();
  state->restarts = {};
  state->expected_hosts = 0;
}

/// Takes over the agent's join request; the leader's later decisions have priority.
void update(MembershipState* state, Agent* agent, const JoinRequest& request) {
  agent->request = request;
  agent->alive = request.term == state->rules.term;
  if (request.generation < agent->generation) return;
  agent->work = request.work;
  agent->generation = request.generation;
  agent->node_rank = request.last_rank;
  state->newest = std::max(state->newest, request.generation);
  if (state->state == State::kForming) inherit(state, request);
  state->restarts.stepped = state->restarts.stepped || request.stepped;
}

/// A member's user ends it.
void on_leaving(MembershipState* state, const Agent& agent, MemberActions* actions) {
  state->left = ended_by_user(agent);
  if (state->state != State::kRunning) return;
  const int others = state->counts.members + state->counts.spares - 1;
  if (others >= state->rules.min_nodes) {
    begin_leaving(state, state->left->cause, actions);
  } else {
    end_job(state, state->left, actions);
  }
}

/// A member's workers ended, neither well nor with a known failure. Its agent lost its connection
/// and came back unseen, or could not write the failure in time.
void on_workers_gone(MembershipState* state, const Agent& agent, MemberActions* actions) {
  Failure failure = host_failure(agent, {1, 0});
  failure.cause = fmt::format("the workers of host {} ({}) ended; its agent gave no reason",
                              failure.node_rank, failure.host);
  if (state->rules.elastic()) {
    begin_leaving(state, failure.cause, actions);
  } else {
    end_job(state, failure, actions);
  }
}

void on(MembershipState* state, const AgentHere& event, JobTime now, MemberActions* actions) {
  auto place = state->agents.find(event.id);
  if (place == state->agents.end()) {
    if (refused(state, event, actions)) return;
    place = state->agents.try_emplace(event.id).first;
    place->second.arrival = ++state->arrivals;
    state->by_host.emplace(event.request.host_id, event.id);
  } else {
    count_agent(state, place->second, -1);
  }
  state->missing.erase(event.id);
  Agent& agent = place->second;
  const bool leaves = agent.request.leaving == 0 && event.request.leaving != 0;
  update(state, &agent, event.request);
  count_agent(state, agent);
  if (leaves && agent.member) on_leaving(state, agent, actions);
  if (state->state == State::kRunning && agent.member && agent.work == HostWork::kIdle) {
    on_workers_gone(state, agent, actions);
  }
  look(state, now, actions);
}

/// A member is lost without notice.
void on_lost_member(MembershipState* state, const Agent& agent, MemberActions* actions) {
  if (state->state == State::kLeaving && state->failure && agent.busy() &&
      state->failure->node_rank != agent.node_rank && state->rules.elastic()) {
    state->failure.reset();  // others failed because it was gone
    state->why = lost_agent(agent).cause;
    publish_record(*state, actions);
  }
  if (state->state != State::kRunning || agent.work == HostWork::kDone) return;
  if (state->rules.elastic()) {
    begin_leaving(state, lost_agent(agent).cause, actions);
  } else {
    end_job(state, lost_agent(agent), actions);
  }
}

/// The lost agents may be cut off, in a part that has enough hosts to go on without this one.
void hurry_if_too_few(MembershipState* state, MemberActions* actions) {
  const bool ending = state->state == State::kLeaving || state->state == State::kForming;
  const bool too_few = static_cast<int>(state->agents.size()) < state->rules.min_nodes;
  if (!ending || !too_few || state->counts.busy == 0 || state->at_once) return;
  state->at_once = true;
  publish_record(*state, actions);
}

/// If nothing can replace the agent, wait a moment: perhaps only its connection ended.
bool may_come_back(const MembershipState& state, const Agent& agent) {
  return state.state == State::kRunning && !state.rules.elastic() && agent.member && agent.busy() &&
         agent.request.leaving == 0;
}

void on(MembershipState* state, const AgentLost& event, JobTime now, MemberActions* actions) {
  const auto place = state->agents.find(event.id);
  if (place == state->agents.end()) return;
  if (may_come_back(*state, place->second)) {
    state->missing.emplace(event.id, now + state->rules.come_back);
    return;
  }
  const Agent agent = std::move(place->second);
  state->agents.erase(place);
  count_agent(state, agent, -1);
  if (state->rules.fixed_ranks) state->by_wish.erase(agent.request.node_rank.value_or(0));
  state->by_host.erase({agent.request.host_id, event.id});
  if (state->lost_hosts.size() < kMaxLostHosts) state->lost_hosts.push_back(agent.request.host);
  if (agent.member && agent.request.leaving == 0) on_lost_member(state, agent, actions);
  if (agent.request.leaving == 0) hurry_if_too_few(state, actions);
  begin_anew_without_heirs(state);
  look(state, now, actions);
}

/// A missing member did not come back.
void end_missing(MembershipState* state, MemberActions* actions) {
  const Agent& agent = state->agents.at(state->missing.begin()->first);
  end_job(state, lost_agent(agent), actions);
}

void on(MembershipState* state, const WorkersFailed& event, JobTime now, MemberActions* actions) {
  // Workers that are being ended may fail.
  if (state->state != State::kRunning || event.generation != state->generation) return;
  if (!state->missing.empty()) return end_missing(state, actions);  // the loss explains the failure
  RestartRecord record = state->restarts;
  RestartRecord endless = state->restarts;
  const auto decision =
      after_failure(&record, state->rules.max_restarts, event.failure, event.generation);
  const bool hopeless = !after_failure(&endless, INT_MAX, event.failure, event.generation).again;
  // With the last restart gone, the loss of a host may still explain it, see on_lost_member().
  if (!decision.again && (hopeless || state->rules.min_nodes == state->rules.max_nodes)) {
    return end_job(state, event.failure, actions, decision.why_not);
  }
  begin_leaving(state, "", actions, event.failure);
  look(state, now, actions);
}

void on(MembershipState* state, const JobTimePassed&, JobTime now, MemberActions* actions) {
  for (const auto& [id, until] : state->missing) {
    if (now >= until) return end_missing(state, actions);
  }
  look(state, now, actions);
  if (state->state != State::kForming || state->counts.usable >= state->rules.min_nodes) return;
  if (now >= state->forming_since + state->rules.join_timeout) {
    return end_job_by(state, late_text(*state), actions);
  }
  if (now < state->report_at) return;
  state->report_at = now + state->rules.report_after;
  const std::string text = waiting_text(*state);
  if (text == state->awaited) return;
  state->awaited = text;
  publish_record(*state, actions);
}

}  // namespace

MembershipState begin_membership(MembershipRules rules, JobTime now) {
  MembershipState state;
  state.forming_since = now;
  state.report_at = now + rules.report_after;
  state.not_before = rules.not_before;
  state.rules = std::move(rules);
  return state;
}

JobRecord record_of(const MembershipState& state) {
  JobRecord record;
  record.state = state.state;
  record.generation = state.generation;
  record.restart_count = state.restarts.restarts;
  if (state.state == State::kForming) record.awaited = state.awaited;
  record.failure = state.failure;
  record.why = state.why;
  record.at_once = state.at_once;
  record.role = state.rules.own.role;
  record.command = state.rules.own.command;
  record.named = state.rules.own.named;
  record.num_agents = static_cast<int64_t>(state.agents.size());
  return record;
}

std::vector<MemberAction> advance(MembershipState* state, const MemberEvent& event, JobTime now) {
  MemberActions actions;
  if (state->state == State::kEnded) return actions;
  std::visit([&](const auto& each) { on(state, each, now, &actions); }, event);
  return actions;
}

std::optional<JobTime> act_at(const MembershipState& state) {
  const MembershipRules& rules = state.rules;
  if (!state.missing.empty()) {
    const auto sooner = [](const auto& a, const auto& b) { return a.second < b.second; };
    return std::min_element(state.missing.begin(), state.missing.end(), sooner)->second;
  }
  if (state.state == State::kRunning && state.newcomer_since) {
    return *state.newcomer_since + rules.batch;
  }
  if (state.state != State::kForming) return std::nullopt;
  if (state.counts.usable < rules.min_nodes) {
    return std::min(state.report_at, state.forming_since + rules.join_timeout);
  }
  // Workers that are still being ended have priority over the grace.
  if (!state.counts.settled() || !state.enough_since) return std::nullopt;
  return forms_at(state, *state.enough_since);
}

}  // namespace lockstep::inline internal
