#include "lockstep/launch/rendezvous/membership.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <climits>

#include "lockstep/launch/rendezvous/generation.h"
#include "lockstep/launch/rendezvous/waiting_text.h"

namespace lockstep {
namespace {

using State = JobRecord::State;
using Agent = MembershipState::Agent;
using Actions = std::vector<MemberAction>;

/// Hosts named in an error.
constexpr size_t kMaxLostHosts = 8;
/// Adds `agent` to the counts, or takes it out (by = -1).
void count(MembershipState* state, const Agent& agent, int by = 1) {
  auto& counts = state->counts;
  counts.usable += agent.usable() ? by : 0;
  counts.spares += agent.usable() && !agent.member ? by : 0;
  counts.busy += agent.busy() ? by : 0;
  counts.members += agent.member ? by : 0;
  counts.done += agent.member && agent.work == NodeWork::kDone ? by : 0;
}

void publish(const MembershipState& state, Actions* actions) {
  actions->push_back(PublishRecord{record_of(state)});
}

Failure node_failure(const Agent& agent, const ExitStatus& status) {
  Failure failure;
  failure.node_rank = std::max(agent.node_rank, 0);
  failure.host = agent.offer.host;
  failure.status = status;
  return failure;
}

Failure lost_agent(const Agent& agent) {
  Failure failure = node_failure(agent, {1, 0});
  failure.cause = fmt::format("the agent of node {} ({}) died or cannot be reached",
                              failure.node_rank, failure.host);
  return failure;
}

Failure ended_by_user(const Agent& agent) {
  Failure failure = node_failure(agent, {0, agent.offer.leaving});
  failure.cause = fmt::format("node {} ({}): was ended by {}", failure.node_rank, failure.host,
                              signal_name(agent.offer.leaving));
  return failure;
}

void end(MembershipState* state, std::optional<Failure> failure, Actions* actions,
         std::string why = "") {
  state->state = State::kEnded;
  state->failure = std::move(failure);
  state->why = std::move(why);
  publish(*state, actions);
}

void end_by(MembershipState* state, const std::string& cause, Actions* actions) {
  Failure failure;
  failure.status.code = 1;
  failure.cause = cause;
  end(state, failure, actions);
}

void begin_leaving(MembershipState* state, std::string why, Actions* actions,
                   std::optional<Failure> failure = std::nullopt) {
  state->state = State::kLeaving;
  state->failure = std::move(failure);
  state->why = std::move(why);
  state->newcomer_since.reset();
  publish(*state, actions);
}

/// Forming: when a generation starts with those who are here, if they are enough since `since`.
/// After the first they are waited for only where a new leader expects them: they cannot be here
/// before they see that the last leader is gone, however short the user's last call is.
JobTime last_call_at(const MembershipState& state, JobTime since) {
  const MembershipRules& rules = state.rules;
  if (state.generation == 0) return since + rules.last_call_timeout;
  return since + std::max(rules.last_call_timeout, rules.return_grace);
}

/// Forming: starts the next generation if enough are here.
void try_to_form(MembershipState* state, JobTime now, Actions* actions) {
  const MembershipRules& rules = state->rules;
  const int here = state->counts.usable;
  if (here < rules.min_nodes) {
    state->enough_since.reset();
    return;
  }
  if (!state->enough_since) state->enough_since = now;
  const bool again = state->generation > 0 && here >= state->expected_nodes;
  const bool late = now >= last_call_at(*state, *state->enough_since);
  if (state->counts.busy > 0 || !(here >= rules.max_nodes || again || late)) return;
  PublishPlans plans = make_generation(state);
  state->counts = {};
  for (const auto& [id, agent] : state->agents) count(state, agent);
  state->enough_since.reset();
  state->awaited.clear();
  state->lost_hosts.clear();
  state->state = State::kRunning;
  actions->push_back(std::move(plans));
  publish(*state, actions);
}

/// Leaving: all workers are gone.
void begin_forming(MembershipState* state, JobTime now, Actions* actions) {
  const bool enough = state->counts.usable >= state->rules.min_nodes;
  if (state->left && !enough) return end(state, state->left, actions);
  if (state->failure) {
    const auto decision =
        after_failure(&state->restarts, state->rules.max_restarts, *state->failure);
    if (!decision.again) return end(state, state->failure, actions, decision.why_not);
  }
  state->state = State::kForming;
  state->failure.reset();
  state->why.clear();
  state->left.reset();
  state->expected_nodes = 0;
  state->forming_since = now;
  state->say_at = now + state->rules.say_after;
  for (auto& [id, agent] : state->agents) agent.member = false;
  state->counts.spares = state->counts.usable;
  state->counts.members = state->counts.done = 0;
  try_to_form(state, now, actions);
  if (state->state == State::kForming) publish(*state, actions);
}

/// Running: all are done, or somebody waits who could take part.
void look_at_running(MembershipState* state, JobTime now, Actions* actions) {
  const auto& counts = state->counts;
  if (counts.members == counts.done) return end(state, std::nullopt, actions);
  // A job of which a part is done is nearly over.
  const bool room = counts.members < state->rules.max_nodes && counts.done == 0;
  if (!room || counts.spares == 0) {
    state->newcomer_since.reset();
  } else if (!state->newcomer_since) {
    state->newcomer_since = now;
  } else if (now >= *state->newcomer_since + state->rules.batch) {
    begin_leaving(state, fmt::format("{} more came", nodes_word(counts.spares)), actions);
  }
}

void look(MembershipState* state, JobTime now, Actions* actions) {
  if (state->state == State::kRunning) look_at_running(state, now, actions);
  if (state->state == State::kLeaving && state->counts.busy == 0) {
    begin_forming(state, now, actions);
  } else if (state->state == State::kForming) {
    try_to_form(state, now, actions);
  }
}

/// True when this agent cannot take part; says so to it, or to all where the job cannot begin.
bool refused(MembershipState* state, const AgentHere& event, Actions* actions) {
  const MembershipRules& rules = state->rules;
  const Offer& offer = event.offer;
  if (offer.mark != rules.mark) {
    actions->push_back(RefuseAgent{
        event.id, ErrorCode::kInvalidArgument,
        fmt::format("the job of this name at {} has another LOCKSTEP_SECRET or LOCKSTEP_TLS: give "
                    "each job an --rdzv_id of its own, and all its nodes one secret",
                    rules.place)});
    return true;
  }
  if (offer.min_nodes != rules.min_nodes || offer.max_nodes != rules.max_nodes) {
    const std::string what =
        fmt::format("node {}({}) was started with --nnodes {}, the job at {} with {}",
                    offer.node_rank ? fmt::format("{} ", *offer.node_rank) : "", offer.host,
                    nodes_text(offer.min_nodes, offer.max_nodes), rules.place,
                    nodes_text(rules.min_nodes, rules.max_nodes));
    if (rules.fixed_ranks && state->generation == 0) {
      end_by(state, what, actions);
    } else {
      actions->push_back(RefuseAgent{event.id, ErrorCode::kInvalidArgument, what});
    }
    return true;
  }
  if (!rules.fixed_ranks && offer.role == rules.role && offer.program != rules.program) {
    actions->push_back(RefuseAgent{
        event.id, ErrorCode::kInvalidArgument,
        fmt::format("node ({}) was started to run {}, the job of this name at {} runs {}: give "
                    "each job an --rdzv_id and an --rdzv_endpoint of its own, or each program a "
                    "--role",
                    offer.host, offer.program, rules.place, rules.program)});
    return true;
  }
  if (!rules.fixed_ranks) return false;
  const auto& [holder, taken] =
      *state->by_wish.try_emplace(offer.node_rank.value_or(0), event.id).first;
  if (taken == event.id) return false;
  actions->push_back(RefuseAgent{event.id, ErrorCode::kMismatch,
                                 fmt::format("--node_rank {} is taken by an agent on {}", holder,
                                             state->agents.at(taken).offer.host)});
  return true;
}

/// What a new leader learns of the generation that ended when the last one went.
void inherit(MembershipState* state, const Offer& offer) {
  if (offer.generation <= state->generation) return;
  state->generation = offer.generation;
  state->restarts.restarts = std::max(state->restarts.restarts, offer.restart_count);
  state->expected_nodes = std::min(offer.num_nodes - 1, state->rules.max_nodes);
}

/// Takes over what the agent says of itself; what the leader has decided since counts more.
void update(MembershipState* state, Agent* agent, const Offer& offer) {
  agent->offer = offer;
  if (offer.generation < agent->generation) return;
  agent->work = offer.work;
  agent->generation = offer.generation;
  agent->node_rank = offer.last_rank;
  state->newest = std::max(state->newest, offer.generation);
  if (state->state == State::kForming) inherit(state, offer);
}

/// A member is told to end by its user.
void on_leaving(MembershipState* state, const Agent& agent, Actions* actions) {
  state->left = ended_by_user(agent);
  if (state->state != State::kRunning) return;
  const int others = state->counts.members + state->counts.spares - 1;
  if (others >= state->rules.min_nodes) {
    begin_leaving(state, state->left->cause, actions);
  } else {
    end(state, state->left, actions);
  }
}

/// A member's workers ended, neither well nor by a failure that was heard of: its agent lost its
/// connection and came back before that was seen, or could not write the failure in time.
void on_workers_gone(MembershipState* state, const Agent& agent, Actions* actions) {
  Failure failure = node_failure(agent, {1, 0});
  failure.cause = fmt::format("the workers of node {} ({}) ended; its agent did not say why",
                              failure.node_rank, failure.host);
  if (state->rules.elastic()) {
    begin_leaving(state, failure.cause, actions);
  } else {
    end(state, failure, actions);
  }
}

void on(MembershipState* state, const AgentHere& event, JobTime now, Actions* actions) {
  auto place = state->agents.find(event.id);
  if (place == state->agents.end()) {
    if (refused(state, event, actions)) return;
    place = state->agents.try_emplace(event.id).first;
    place->second.arrival = ++state->arrivals;
  } else {
    count(state, place->second, -1);
  }
  Agent& agent = place->second;
  const bool leaves = agent.offer.leaving == 0 && event.offer.leaving != 0;
  update(state, &agent, event.offer);
  count(state, agent);
  if (leaves && agent.member) on_leaving(state, agent, actions);
  if (state->state == State::kRunning && agent.member && agent.work == NodeWork::kIdle) {
    on_workers_gone(state, agent, actions);
  }
  look(state, now, actions);
}

/// A member that did not say goodbye.
void on_lost_member(MembershipState* state, const Agent& agent, Actions* actions) {
  if (state->state == State::kLeaving && state->failure && agent.busy() &&
      state->failure->node_rank != agent.node_rank && state->rules.elastic()) {
    state->failure.reset();  // others failed because it was gone
    state->why = lost_agent(agent).cause;
    publish(*state, actions);
  }
  if (state->state != State::kRunning || agent.work == NodeWork::kDone) return;
  if (state->rules.elastic()) {
    begin_leaving(state, lost_agent(agent).cause, actions);
  } else {
    end(state, lost_agent(agent), actions);
  }
}

void on(MembershipState* state, const AgentLost& event, JobTime now, Actions* actions) {
  const auto place = state->agents.find(event.id);
  if (place == state->agents.end()) return;
  const Agent agent = std::move(place->second);
  state->agents.erase(place);
  count(state, agent, -1);
  if (state->rules.fixed_ranks) state->by_wish.erase(agent.offer.node_rank.value_or(0));
  if (state->lost_hosts.size() < kMaxLostHosts) state->lost_hosts.push_back(agent.offer.host);
  if (agent.member && agent.offer.leaving == 0) on_lost_member(state, agent, actions);
  look(state, now, actions);
}

void on(MembershipState* state, const WorkersFailed& event, JobTime now, Actions* actions) {
  // Of workers that are being ended some fail.
  if (state->state != State::kRunning || event.generation != state->generation) return;
  RestartRecord record = state->restarts;
  RestartRecord endless = state->restarts;
  const auto decision = after_failure(&record, state->rules.max_restarts, event.failure);
  const bool hopeless = !after_failure(&endless, INT_MAX, event.failure).again;
  // With the last restart gone, the loss of a node may still explain it, see on_lost_member().
  if (!decision.again && (hopeless || state->rules.min_nodes == state->rules.max_nodes)) {
    return end(state, event.failure, actions, decision.why_not);
  }
  begin_leaving(state, "", actions, event.failure);
  look(state, now, actions);
}

void on(MembershipState* state, const JobTimePassed&, JobTime now, Actions* actions) {
  look(state, now, actions);
  if (state->state != State::kForming || state->counts.usable >= state->rules.min_nodes) return;
  if (now >= state->forming_since + state->rules.join_timeout) {
    return end_by(state, late_text(*state), actions);
  }
  if (now < state->say_at) return;
  state->say_at = now + state->rules.say_after;
  const std::string text = waiting_text(*state);
  if (text == state->awaited) return;
  state->awaited = text;
  publish(*state, actions);
}

}  // namespace

MembershipState begin_membership(MembershipRules rules, JobTime now) {
  MembershipState state;
  state.forming_since = now;
  state.say_at = now + rules.say_after;
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
  record.num_agents = static_cast<int64_t>(state.agents.size());
  return record;
}

std::vector<MemberAction> advance(MembershipState* state, const MemberEvent& event, JobTime now) {
  Actions actions;
  if (state->state == State::kEnded) return actions;
  std::visit([&](const auto& each) { on(state, each, now, &actions); }, event);
  return actions;
}

std::optional<JobTime> act_at(const MembershipState& state) {
  const MembershipRules& rules = state.rules;
  if (state.state == State::kRunning && state.newcomer_since) {
    return *state.newcomer_since + rules.batch;
  }
  if (state.state != State::kForming) return std::nullopt;
  if (state.counts.usable < rules.min_nodes) {
    return std::min(state.say_at, state.forming_since + rules.join_timeout);
  }
  // Workers that are still being ended come before the grace.
  if (state.counts.busy > 0 || !state.enough_since) return std::nullopt;
  return last_call_at(state, *state.enough_since);
}

}  // namespace lockstep
