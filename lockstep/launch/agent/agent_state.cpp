#include "lockstep/launch/agent/agent_state.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace lockstep::inline internal {
namespace {

using Phase = AgentState::Phase;
using Actions = std::vector<AgentAction>;

/// After this time the user is told which ranks have not ended.
constexpr std::chrono::seconds kReportWaitingAfter{3};
/// A killed process that lives longer than this hangs in the kernel; give it up.
constexpr std::chrono::seconds kKillPatience{60};

bool all(const AgentState& state, bool AgentState::Worker::*what) {
  return std::all_of(state.workers.begin(), state.workers.end(),
                     [what](const auto& worker) { return worker.*what; });
}

bool stopping(const AgentState& state) {
  return state.phase == Phase::kStopping || state.phase == Phase::kKilling;
}

void begin_stop(AgentState* state, int signal, AgentTime now, Actions* actions) {
  state->phase = Phase::kStopping;
  state->kill_at = now + state->grace;
  state->act_at = std::min(*state->kill_at, now + kReportWaitingAfter);
  actions->push_back(SendSignal{signal});
}

void begin_kill(AgentState* state, AgentTime now, Actions* actions) {
  state->phase = Phase::kKilling;
  state->act_at = now + kKillPatience;
  actions->push_back(SendSignal{SIGKILL});
}

/// No process of this generation is left.
void end_generation(AgentState* state, Actions* actions) {
  state->act_at.reset();
  if (state->stop_signal != 0 || state->job_over) {
    state->phase = Phase::kFinished;
  } else if (state->first_failed || state->must_leave) {
    state->phase = Phase::kBetween;
    actions->push_back(PublishGone{});
  } else {
    state->phase = Phase::kWaiting;
    actions->push_back(PublishSuccess{});
  }
}

void end_if_done(AgentState* state, AgentTime now, Actions* actions) {
  if (!all(*state, &AgentState::Worker::ended)) return;
  if (all(*state, &AgentState::Worker::gone)) return end_generation(state, actions);
  // Every worker ended well but left processes behind.
  if (state->phase == Phase::kRunning) begin_stop(state, SIGTERM, now, actions);
}

void on(AgentState* state, const WorkerEnded& event, AgentTime now, Actions* actions) {
  auto& worker = state->workers[static_cast<size_t>(event.local_rank)];
  worker.ended = true;
  worker.gone = !event.group_left;
  worker.status = event.status;
  state->end_order.push_back(event.local_rank);
  const bool first = state->phase == Phase::kRunning && !event.status.ok();
  if (first) {
    state->first_failed = event.status.signal == 0 && !event.dying_by_signal.empty()
                              ? event.dying_by_signal.front()
                              : event.local_rank;
    begin_stop(state, SIGTERM, now, actions);
  }
  // A failed worker that is still dying is published when its end is known.
  if (state->first_failed == event.local_rank) actions->push_back(PublishFailure{event.local_rank});
  end_if_done(state, now, actions);
}

void on(AgentState* state, const GroupGone& event, AgentTime now, Actions* actions) {
  state->workers[static_cast<size_t>(event.local_rank)].gone = true;
  end_if_done(state, now, actions);
}

void on(AgentState* state, const SignalCame& event, AgentTime now, Actions* actions) {
  const bool user = event.signal == SIGUSR1 || event.signal == SIGUSR2;
  if (user && state->ending_signals.count(event.signal) == 0) {
    actions->push_back(SendSignal{event.signal});
    return;
  }
  if (state->phase == Phase::kFinished) return;
  const bool again = state->stop_signal != 0;
  if (!again) state->stop_signal = event.signal;
  if (state->phase == Phase::kRunning) {
    begin_stop(state, event.signal, now, actions);
  } else if (state->phase == Phase::kWaiting || state->phase == Phase::kBetween) {
    state->left_others = true;
    state->phase = Phase::kFinished;
  } else if (state->phase == Phase::kStopping && event.signal == SIGINT) {
    begin_kill(state, now, actions);  // a second SIGINT does not wait
  }
  if (!again) actions->push_back(PublishSignal{event.signal});
  if (state->workers.empty() && stopping(*state)) end_generation(state, actions);
}

void on(AgentState* state, const GenerationOver& event, AgentTime now, Actions* actions) {
  state->must_leave = true;
  if (state->phase == Phase::kRunning) begin_stop(state, SIGTERM, now, actions);
  if (state->phase == Phase::kWaiting) end_generation(state, actions);
  if (state->phase != Phase::kStopping || !event.kill_by) return;
  state->kill_at = std::min(*state->kill_at, *event.kill_by);
  state->act_at = std::min(state->act_at.value_or(*state->kill_at), *state->kill_at);
  if (now >= *state->kill_at) begin_kill(state, now, actions);
}

void on(AgentState* state, const JobOver&, AgentTime now, Actions* actions) {
  state->job_over = true;
  state->ended_by_job = state->stop_signal == 0;
  if (state->phase == Phase::kRunning) {
    begin_stop(state, SIGTERM, now, actions);
  } else if (!stopping(*state)) {
    state->phase = Phase::kFinished;
  }
}

void on(AgentState* state, const GenerationStarted& event, AgentTime, Actions*) {
  AgentState next;
  next.grace = state->grace;
  next.ending_signals = std::move(state->ending_signals);
  next.workers.resize(static_cast<size_t>(event.workers));
  *state = std::move(next);
}

void on(AgentState* state, const TimePassed&, AgentTime now, Actions* actions) {
  if (!stopping(*state) || !state->act_at || now < *state->act_at) return;
  if (state->phase == Phase::kKilling) {
    state->phase = Phase::kFinished;
    state->act_at.reset();
  } else if (now >= *state->kill_at) {
    begin_kill(state, now, actions);
  } else {
    state->act_at = state->kill_at;
    actions->push_back(ReportWaiting{});
  }
}

void on(AgentState* state, const AgentResumed& event, AgentTime, Actions*) {
  const auto time = std::chrono::duration_cast<AgentTime::duration>(event.time);
  if (state->act_at) *state->act_at += time;
  if (state->kill_at) *state->kill_at += time;
}

/// After a forwarded signal: see exit_code().
int code_after_signal(const AgentState& state) {
  // The agent's own output is broken; the workers were only asked to end.
  if (state.stop_signal == SIGPIPE) return 128 + SIGPIPE;
  bool all_well = true;
  for (const int local_rank : state.end_order) {
    const ExitStatus& status = state.workers[static_cast<size_t>(local_rank)].status;
    if (status.code != 0) return status.code;
    all_well = all_well && status.ok();
  }
  all_well = all_well && !state.workers.empty() && state.end_order.size() == state.workers.size() &&
             !state.left_others;
  return all_well ? 0 : 128 + state.stop_signal;
}

}  // namespace

std::vector<AgentAction> advance(AgentState* state, const AgentEvent& event, AgentTime now) {
  Actions actions;
  std::visit([&](const auto& each) { on(state, each, now, &actions); }, event);
  return actions;
}

std::vector<int> remaining(const AgentState& state) {
  std::vector<int> ranks;
  for (size_t i = 0; i < state.workers.size(); ++i) {
    if (!state.workers[i].gone) ranks.push_back(static_cast<int>(i));
  }
  return ranks;
}

std::vector<int> ended_well_before(const AgentState& state, int local_rank) {
  std::vector<int> ranks;
  for (const int each : state.end_order) {
    if (each == local_rank) break;
    if (state.workers[static_cast<size_t>(each)].status.ok()) ranks.push_back(each);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

int exit_code(const AgentState& state, const std::optional<ExitStatus>& job) {
  if (state.ended_by_job) return job ? job->shell_code() : 0;
  if (state.first_failed) {
    const auto& worker = state.workers[static_cast<size_t>(*state.first_failed)];
    return worker.ended ? worker.status.shell_code() : 1;
  }
  if (state.stop_signal != 0) return code_after_signal(state);
  return state.must_leave ? 1 : 0;  // 1: this host cannot go on with the job
}

}  // namespace lockstep::inline internal
