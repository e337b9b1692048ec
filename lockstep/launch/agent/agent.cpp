#include "lockstep/launch/agent/agent.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/base/children.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/deadline.h"
#include "lockstep/launch/agent/error_file.h"
#include "lockstep/launch/agent/final_report.h"
#include "lockstep/launch/agent/log_folder.h"
#include "lockstep/launch/agent/output/worker_lines.h"
#include "lockstep/launch/agent/worker_command.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/identity.h"

namespace lockstep {
namespace {

/// Poller tags besides those of workers (worker_group.h).
enum AgentTag : uint64_t {
  kSignals = 16ULL << 32,
  kStatus = 17ULL << 32,
  kConsole = 18ULL << 32,
  kFirstConnection = 19ULL << 32,
  kFirstTorchConnection = 20ULL << 32,
};
constexpr uint64_t kKindMask = ~0ULL << 32;

bool is_time(const std::optional<AgentTime>& due) {
  return due && std::chrono::steady_clock::now() >= *due;
}

}  // namespace

Agent::Agent(const RunOptions& options, const Environment& environment, Rendezvous* rendezvous,
             Console* console, std::string program)
    : options_(options),
      environment_(environment),
      rendezvous_(rendezvous),
      starter_(uses_fork_server(environment, options)),
      listing_(environment_),
      console_(console) {
  setup_ = {&options_, &environment_, std::move(program), agent_mark(), usable_cores(),
            &starter_, nullptr,       &poller_,           nullptr,      own_file_base(environment),
            0};
  state_.grace = options_.shutdown_timeout;
  state_.ending_signals = options_.ending_signals;
}

Agent::~Agent() {
  if (!watchdog_) return;
  workers_.reset();
  kill_remaining_children({watchdog_->pid()});
}

int Agent::run() {
  adopt_orphans();
  start_watchdog();
  if (options_.num_nodes > 1) load_while_waiting();
  const auto assignment = rendezvous_->join();
  if (assignment) return run(*assignment);
  log_info("the job has ended well, without this host");
  return 0;
}

void Agent::start_watchdog() {
  // A group for each worker, and one for the process that they are forked from.
  watchdog_.emplace(std::vector<std::string>{"LOCKSTEP_AGENT=" + setup_.mark},
                    static_cast<size_t>(options_.nproc_per_node) + 1, own_files(),
                    listing_.files().size());
  setup_.watchdog = &*watchdog_;
}

void Agent::load_while_waiting() {
  WorkerEnvOptions known;
  known.agent = setup_.mark;
  known.cores = setup_.cores;
  if (!options_.cpus_of_ranks.empty()) known.cpus = options_.cpus_of_ranks[0];
  const auto environment = waiting_environment(environment_, options_.nproc_per_node, known);
  std::vector<Spawn> workers(2);  // the first and the last: they differ where any do
  for (size_t i = 0; i < workers.size(); ++i) {
    workers[i].path = setup_.program;
    workers[i].argv = with_local_rank(options_.command, i == 0 ? 0 : options_.nproc_per_node - 1);
    workers[i].environment = &environment;
  }
  starter_.load(workers);
  if (starter_.server() > 0) watchdog_->watch(starter_.server());
}

int Agent::run(const JobAssignment& assignment) {
  signals_.emplace(options_.ending_signals, options_.signals_named);
  starter_.interrupted_by(signals_->ending_fd());
  assignment_ = assignment;
  if (!options_.log_dir.empty() && options_.log_dir != kNoFiles)
    run_folder_ = make_run_folder(options_.log_dir, assignment_);
  poller_.add(signals_->fd(), kSignals);
  if (rendezvous_->fd() >= 0) poller_.add(rendezvous_->fd(), kStatus);
  listing_.begin();
  if (!run_folder_.empty() && ranks_write_files(options_, assignment_.ranks.local_size)) {
    room_.begin();
  }
  try {
    begin_generation(assignment_);
    // From here on it may end at any time, and the kernel may reuse its pid.
    if (starter_.server() > 0) watchdog_->forget(starter_.server());
    loop();
  } catch (const Error& error) {
    rendezvous_->failed(node_failure(assignment_, {1, 0}, error.what()));
    throw;
  }
  return finish();
}

void Agent::begin_generation(const JobAssignment& assignment) {
  assignment_ = assignment;
  leave_handled_ = false;
  handled_kill_by_.reset();
  if (rendezvous_->first_connection_fd() >= 0)
    poller_.add(rendezvous_->first_connection_fd(), kFirstConnection);
  if (rendezvous_->first_torch_connection_fd() >= 0)
    poller_.add(rendezvous_->first_torch_connection_fd(), kFirstTorchConnection);
  workers_.reset();
  if (lines_) lines_->flush();
  attempt_folder_ = run_folder_.empty() ? "" : make_attempt_folder(run_folder_, assignment_);
  lines_.emplace(job_lines(options_, environment_, assignment_, console_kind(), attempt_folder_),
                 console_);
  setup_.lines = &*lines_;
  setup_.terminal_columns = lines_->columns(STDERR_FILENO);
  workers_.emplace(setup_, assignment_, attempt_folder_);
  if (!reading_) workers_->set_reading(false);
  if (listing_.written()) register_job();
  dispatch(GenerationStarted{workers_->size()});
}

/// Files that were there before may be missing for a moment, as on a file server. Workers that
/// cannot be started are therefore one more failure of the job.
void Agent::begin_again(const JobAssignment& assignment) {
  try {
    return begin_generation(assignment);
  } catch (const ExecError& error) {
    rendezvous_->failed(node_failure(assignment_, {126, 0}, error.what()));
  } catch (const Error& error) {
    rendezvous_->failed(node_failure(assignment_, {1, 0}, error.what()));
  }
  kill_remaining_children({watchdog_->pid(), starter_.server()});
  workers_.reset();
  rendezvous_->gone(false);
  ask_ = true;
}

/// Files that must not outlive this agent.
std::vector<std::string> Agent::own_files() const {
  std::vector<std::string> files = listing_.files();
  for (int local_rank = 0; local_rank < options_.nproc_per_node; ++local_rank) {
    files.push_back(fmt::format("{}.error_{}", setup_.error_base, local_rank));
  }
  return files;
}

/// For `lockstep ps` and its like.
void Agent::register_job() {
  listing_.write(assignment_, options_.command,
                 {run_folder_, attempt_folder_,
                  workers_ ? std::optional(workers_->steps_path()) : std::nullopt});
}

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
      // Its pidfd is ready too; taken from there, workers come in the order of their ends.
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

std::optional<Failure> Agent::first_failure() const {
  if (end_ && end_->failure) return end_->failure;
  if (!state_.first_failed) return std::nullopt;
  const auto& worker = state_.workers[static_cast<size_t>(*state_.first_failed)];
  return workers_->failure_of(*state_.first_failed, worker.status);
}

/// For the launcher that started this agent as its worker.
void Agent::pass_on_error_file(const Failure& failure) const {
  const auto ours = environment_.find("TORCHELASTIC_ERROR_FILE");
  if (ours == environment_.end() || failure.node_rank != assignment_.node_rank || failure.rank < 0)
    return;
  copy_error_file(workers_->error_file(failure.rank - assignment_.ranks.first_rank), ours->second,
                  failure.status.signal != 0 ? -failure.status.signal : failure.status.code);
}

int Agent::finish() {
  kill_remaining_children({watchdog_->pid()});
  if (workers_) workers_->close_output();
  if (room_.due()) room_.look(attempt_folder_);
  lines_->flush();
  const auto failure = first_failure();
  if (failure) pass_on_error_file(*failure);
  const bool job_failed = end_ && end_->failure;
  const int code =
      exit_code(state_, job_failed ? std::optional(end_->failure->status) : std::nullopt);
  // A short run has not been listed. Its files have a name, and a failure may be looked up later.
  if (listing_.due() && (!run_folder_.empty() || code != 0)) register_job();
  listing_.remember_end(code, failure, assignment_.num_nodes);
  workers_.reset();
  listing_.remove();
  watchdog_->dismiss();
  // Nothing runs any more, and no file is left behind. From here on a signal ends this program,
  // even while its output has no reader.
  ::pthread_sigmask(SIG_SETMASK, &signals_->original_mask(), nullptr);
  return FinalReport{options_, assignment_, state_, console_}.write(
      code, failure, end_ ? end_->why_not_again : "");
}

}  // namespace lockstep
