// What reaches an agent while its workers run (their ends, signals, the job's status), and the
// actions that agent_state.h decides on.

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/base/children.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/deadline.h"
#include "lockstep/launch/agent/agent.h"
#include "lockstep/launch/agent/output/worker_lines.h"

namespace lockstep::inline internal {
namespace {

constexpr uint64_t kKindMask = ~0ULL << 32;

bool is_time(const std::optional<AgentTime>& due) {
  return due && std::chrono::steady_clock::now() >= *due;
}

}  // namespace

void Agent::loop() {
  while (state_.phase != AgentState::Phase::kFinished) {
    const auto ready = poller_.wait(wait_ms());
    lines_->are_of(std::chrono::steady_clock::now());
    for (const epoll_event& event : ready) on_ready(event.data.u64);
    if (orphans_ended_) reap_orphans();
    if (is_time(state_.act_at)) dispatch(TimePassed{});
    if (is_time(listing_.due())) register_job();
    if (is_time(room_.due())) room_.look(attempt_folder_);
    while (ask_) read_status();
    flush_console();
  }
}

int Agent::wait_ms() const {
  auto first = state_.act_at;
  for (const auto& other : {lines_->due(), listing_.due(), room_.due()}) {
    if (other && (!first || *other < *first)) first = other;
  }
  return first ? Deadline::at(*first).left_poll_ms() : -1;
}

void Agent::on_ready(uint64_t tag) {
  switch (tag & kKindMask) {
    case kWorkerEnded:
      if (const auto end = workers_->take_end(static_cast<int>(tag & ~kKindMask))) dispatch(*end);
      return;
    case kWorkerOut:
    case kWorkerErr:
      return workers_->read(tag);
    case kSignals:
      return on_signals();
    case kStatus:
      ask_ = true;
      return;
    case kFirstConnection:
      return on_first_connection();
    case kFirstTorchConnection:
      return on_first_torch_connection();
    default:
      return;  // the console can be written: the loop does so anyway
  }
}

void Agent::on_signals() {
  while (const int signal = signals_->next()) {
    if (signal == SIGCHLD) {
      orphans_ended_ = true;
    } else if (signal == SIGTSTP) {
      suspend();
    } else if (signal == SIGCONT) {
      resume();
    } else {
      dispatch(SignalCame{signal});
    }
  }
}

/// Ctrl-Z: stops the ranks, whose groups have no terminal and would not see it, then this process.
/// Where a starter is at the terminal, the starter stops instead, and this agent waits for its
/// SIGCONT.
void Agent::suspend() {
  if (!options_.started_by_starter && !may_be_stopped()) return;
  if (!suspended_since_) suspended_since_ = std::chrono::steady_clock::now();
  if (workers_) workers_->send(remaining(state_), SIGSTOP);
  if (options_.started_by_starter) return;
  ::raise(SIGSTOP);
  resume();
}

void Agent::resume() {
  if (!suspended_since_) return;
  if (workers_) workers_->send(remaining(state_), SIGCONT);
  dispatch(AgentResumed{std::chrono::steady_clock::now() - *suspended_since_});
  suspended_since_.reset();
}

void Agent::reap_orphans() {
  orphans_ended_ = false;
  while (const pid_t pid = ended_child()) {
    if (workers_ && workers_->runs(pid)) {
      // Its handle is ready too, or soon; from there workers come in the order of their ends.
      orphans_ended_ = true;
      break;
    }
    reap(pid);
  }
  if (!workers_) return;
  for (const int local_rank : workers_->gone_groups()) dispatch(GroupGone{local_rank});
}

void Agent::on_first_connection() {
  poller_.remove(rendezvous_->first_connection_fd());
  rendezvous_->serve();
}

void Agent::on_first_torch_connection() {
  poller_.remove(rendezvous_->first_torch_connection_fd());
  rendezvous_->serve_torch();
}

/// Takes the job's status, and the next generation when it is there.
void Agent::read_status() {
  ask_ = false;
  const JobStatus status = rendezvous_->job_status();
  if (status.end && !end_) {
    end_ = status.end;
    dispatch(JobOver{});
  } else if (status.leave && !end_ && (!leave_handled_ || status.kill_by != handled_kill_by_)) {
    if (!leave_handled_ && state_.stop_signal == 0) report_restart(status);
    leave_handled_ = true;
    handled_kill_by_ = status.kill_by;
    if (workers_ && !status.failure) workers_->announce_job_goes_on();
    dispatch(GenerationOver{status.kill_by});
  }
  if (state_.phase != AgentState::Phase::kBetween) return;
  if (const auto assignment = rendezvous_->next()) begin_again(*assignment);
}

void Agent::report_restart(const JobStatus& status) {
  std::string line = "lockstep run: ";
  if (status.failure) {
    line +=
        fmt::format("{}; restart {} of {}", failure_line(*status.failure, assignment_.num_nodes),
                    std::min(assignment_.restart_count + 1, assignment_.max_restarts),
                    assignment_.max_restarts);
    if (status.pause.count() > 0) line += fmt::format(" in {} s", status.pause.count());
  } else {
    line += status.why + "; all workers start anew";
  }
  lines_->flush();
  console_->put(2, line);
}

void Agent::flush_console() {
  lines_->pass_time(std::chrono::steady_clock::now(), reading_);
  console_->flush();
  const int waiting = console_->waiting_stream();
  if (watched_stream_ >= 0 && waiting != watched_stream_) {
    poller_.remove(watched_stream_);
    watched_stream_ = -1;
  }
  if (waiting >= 0 && watched_stream_ < 0) {
    poller_.add(waiting, kConsole, EPOLLOUT);
    watched_stream_ = waiting;
  }
  if (console_->full() == reading_) {
    // A console that is not read must hold up the workers, not fill the agent's memory.
    reading_ = !reading_;
    if (workers_) workers_->set_reading(reading_);
  }
  // Treat it as SIGPIPE, as any program whose output has no reader.
  if (console_->broken() && state_.phase == AgentState::Phase::kRunning)
    dispatch(SignalCame{SIGPIPE});
}

void Agent::dispatch(const AgentEvent& event) {
  for (const AgentAction& action : advance(&state_, event, std::chrono::steady_clock::now())) {
    std::visit([this](const auto& each) { act(each); }, action);
  }
}

void Agent::act(const SendSignal& action) {
  // A broken console concerns only the agent; its workers get SIGTERM as always.
  workers_->send(remaining(state_), action.signal == SIGPIPE ? SIGTERM : action.signal);
  workers_->send(remaining(state_), SIGCONT);  // a stopped process would not see the signal
}

void Agent::act(const PublishFailure& action) {
  const auto& worker = state_.workers[static_cast<size_t>(action.local_rank)];
  rendezvous_->failed(workers_->failure_of(action.local_rank, worker.status));
  ask_ = true;
}

void Agent::act(const PublishSignal& action) {
  rendezvous_->leave(action.signal);
  ask_ = true;
}

void Agent::act(const PublishSuccess&) {
  rendezvous_->done();
  ask_ = true;
}

void Agent::act(const PublishGone&) {
  // Also processes that left their groups: no two generations run side by side.
  kill_remaining_children({watchdog_->pid(), starter_.server()});
  workers_->close_output();
  rendezvous_->gone(workers_->steps() == Steps::kSome);
  ask_ = true;
}

void Agent::act(const ReportWaiting&) {
  std::vector<int> ranks;
  for (const int local_rank : remaining(state_)) {
    ranks.push_back(assignment_.ranks.first_rank + local_rank);
  }
  const auto left =
      std::chrono::duration<double>(*state_.kill_at - std::chrono::steady_clock::now());
  log_info(
      fmt::format("waiting for {} to end; SIGKILL in {:.0f} s", rank_words(ranks), left.count()));
}

}  // namespace lockstep::inline internal
