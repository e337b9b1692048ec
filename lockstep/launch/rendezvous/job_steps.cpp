#include "lockstep/launch/rendezvous/job_steps.h"

#include <algorithm>

#include "lockstep/launch/rendezvous/generation.h"

namespace lockstep::inline internal {
namespace {

using State = JobRecord::State;

}  // namespace

void count_agent(MembershipState* state, const MembershipState::Agent& agent, int by) {
  auto& counts = state->counts;
  counts.usable += agent.usable() ? by : 0;
  counts.spares += agent.usable() && !agent.member ? by : 0;
  counts.busy += agent.busy() ? by : 0;
  counts.doubtful += agent.doubtful() ? by : 0;
  counts.members += agent.member ? by : 0;
  counts.done += agent.member && agent.work == HostWork::kDone ? by : 0;
}

void publish_record(const MembershipState& state, MemberActions* actions) {
  actions->push_back(PublishRecord{record_of(state)});
}

void end_job(MembershipState* state, std::optional<Failure> failure, MemberActions* actions,
             std::string why) {
  state->state = State::kEnded;
  state->missing.clear();
  state->failure = std::move(failure);
  state->why = std::move(why);
  publish_record(*state, actions);
}

void end_job_by(MembershipState* state, const std::string& cause, MemberActions* actions) {
  Failure failure;
  failure.status.code = 1;
  failure.cause = cause;
  end_job(state, failure, actions);
}

void begin_leaving(MembershipState* state, std::string why, MemberActions* actions,
                   std::optional<Failure> failure) {
  state->state = State::kLeaving;
  state->failure = std::move(failure);
  state->why = std::move(why);
  state->newcomer_since.reset();
  publish_record(*state, actions);
}

// After the first generation only a new leader that expects other agents waits for them. They
// cannot be here before they notice the last leader's loss, however short the last call is.
JobTime forms_at(const MembershipState& state, JobTime since) {
  const MembershipRules& rules = state.rules;
  const int here = state.counts.usable;
  const bool again = state.generation > 0 && here >= state.expected_hosts;
  if (here >= rules.max_nodes || again) return std::max(since, state.not_before);
  const auto grace = state.generation == 0 ? rules.last_call_timeout
                                           : std::max(rules.last_call_timeout, rules.return_grace);
  return std::max(since + grace, state.not_before);
}

void try_to_form(MembershipState* state, JobTime now, MemberActions* actions) {
  const MembershipRules& rules = state->rules;
  const int here = state->counts.usable;
  if (here < rules.min_nodes) {
    state->enough_since.reset();
    return;
  }
  if (!state->enough_since) state->enough_since = now;
  if (!state->counts.settled() || now < forms_at(*state, *state->enough_since)) return;
  PublishAssignments publish = make_generation(state);
  state->counts = {};
  for (const auto& [id, agent] : state->agents) count_agent(state, agent);
  state->enough_since.reset();
  state->awaited.clear();
  state->lost_hosts.clear();
  state->failure.reset();
  state->why.clear();
  state->at_once = false;
  state->missing.clear();
  state->state = State::kRunning;
  actions->push_back(std::move(publish));
  publish_record(*state, actions);
}

void begin_forming(MembershipState* state, JobTime now, MemberActions* actions) {
  const bool enough = state->counts.usable >= state->rules.min_nodes;
  if (state->left && !enough) return end_job(state, state->left, actions);
  if (state->failure) {
    const auto decision = after_failure(&state->restarts, state->rules.max_restarts,
                                        *state->failure, state->generation);
    if (!decision.again) return end_job(state, state->failure, actions, decision.why_not);
    state->not_before = std::max(state->not_before, now + restart_delay(state->restarts));
  }
  state->state = State::kForming;
  state->left.reset();
  state->expected_hosts = 0;
  state->forming_since = now;
  state->report_at = now + state->rules.report_after;
  for (auto& [id, agent] : state->agents) agent.member = false;
  state->counts.spares = state->counts.usable;
  state->counts.members = state->counts.done = 0;
  try_to_form(state, now, actions);
  if (state->state == State::kForming) publish_record(*state, actions);
}

}  // namespace lockstep::inline internal
